#!/usr/bin/env python3
"""Makes an OCI image of one program and the libraries that it is linked to: image.py PROGRAM VERSION OUT.oci.tar"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def libraries(program):
    """Files that the loader needs: their paths in the image, and where they lie here."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        found = re.search(r"(?:=> )?(/\S+) \(0x", line)
        if found:
            yield found.group(1), os.path.realpath(found.group(1))


def layer(program):
    """The only layer, as a tar: the program, its libraries, and a directory to write to."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        def add(name, source, mode):
            info = tarfile.TarInfo(name.lstrip("/"))
            info.size, info.mode = os.path.getsize(source), mode
            with open(source, "rb") as file:
                tar.addfile(info, file)

        for name, mode in (("tmp", 0o1777), ("data", 0o1777)):
            info = tarfile.TarInfo(name)
            info.type, info.mode = tarfile.DIRTYPE, mode
            tar.addfile(info)
        add("/usr/bin/strata", program, 0o755)
        for name, source in libraries(program):
            add(name, source, 0o755)
    return data.getvalue()


def main():
    program, version, out = sys.argv[1:]
    raw = layer(program)
    packed = gzip.compress(raw, mtime=0)
    digest = lambda data: "sha256:" + hashlib.sha256(data).hexdigest()
    blobs = {}

    def blob(data, kind):
        blobs[digest(data)] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": digest(data), "size": len(data)}

    config = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": ["/usr/bin/strata"], "WorkingDir": "/data", "Env": ["PATH=/usr/bin", "HOME=/data"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(raw)]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(json.dumps(config).encode(), "config.v1+json"),
        "layers": [blob(packed, "layer.v1.tar+gzip")],
    }
    entry = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": f"localhost/strata:{version}",
    }
    index = {"schemaVersion": 2, "manifests": [entry]}
    with tarfile.open(out, "w") as tar:
        files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}
        files.update({f"blobs/sha256/{name.split(':')[1]}": data for name, data in blobs.items()})
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))


if __name__ == "__main__":
    main()
