#!/bin/sh
# Before a removal; in an update the new version's postinstall does what is needed.
set -e
case "$1" in
remove | 0) # what deb and rpm call it
	if [ -d /run/systemd/system ]; then
		systemctl --no-reload disable --now eppctl.service
	fi
	;;
esac
