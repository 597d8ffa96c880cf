#!/usr/bin/env bash
# Runs a real engine behind Envoy and serve and holds what serve predicts against
# what the engine reports. EPPCTL_ENGINE_ENV names the environment with the
# engine; without it this prints how to make one, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -z "${EPPCTL_ENGINE_ENV:-}" ]]; then
  sed -n '/^## Making an environment/,$p' docs/test-engine.md >&2
  echo "test-engine: EPPCTL_ENGINE_ENV is not set: it names a Python environment that holds vLLM or SGLang, as above" >&2
  exit 2
fi
export ENVOY
ENVOY=$(scripts/envoy.sh)
mkdir -p out
go build -o out/testengine ./scripts/testengine
exec out/testengine "$@"
