"""What huggingface_hub makes of a cache: downloads, or reads what is there.

usage: hub.py fetch|cached CACHE NAME REVISION FILE...   (HF_ENDPOINT and others from the environment)
Prints one JSON object: file -> path, or null when it is not in the cache; "scan" -> what a scan of the cache finds.
"""
import json, sys
from huggingface_hub import hf_hub_download, scan_cache_dir, try_to_load_from_cache

verb, cache, name, revision, *files = sys.argv[1:]
out = {}
for f in files:
    if verb == "fetch":
        out[f] = hf_hub_download(name, f, revision=revision, cache_dir=cache)
    else:
        path = try_to_load_from_cache(name, f, revision=revision, cache_dir=cache)
        out[f] = path if isinstance(path, str) else None
scan = scan_cache_dir(cache)
out["scan"] = {
    "warnings": [str(w) for w in scan.warnings],
    "repos": {
        r.repo_id: {v.commit_hash: [sorted(v.refs), sorted(str(f.file_path.relative_to(v.snapshot_path)) for f in v.files)] for v in r.revisions}
        for r in scan.repos
    },
}
json.dump(out, sys.stdout)
