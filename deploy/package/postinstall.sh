#!/bin/sh
# After an installation or an update. Nothing is enabled or started: there is no
# configuration yet. A serve that runs is restarted into the new version; Envoy goes
# on without it meanwhile.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers eppctl.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart eppctl.service
fi
