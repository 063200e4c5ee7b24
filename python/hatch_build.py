# SPDX-License-Identifier: MIT
"""What the wheel contains besides Python: what `make install` installs, in dt/_prefix."""
import os
import pathlib
import shutil
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# Without debugging information, and without the transport of one machine's MPI.
SETTINGS = ["MPI=0", "CUDA=0", "CFLAGS=-O2", "LDFLAGS=-s"]


class Programs(MetadataHookInterface):
    """Each program is a command that dt_tools starts."""

    def update(self, metadata):
        sources = sorted(pathlib.Path(self.root, "tools").glob("dt*.c"))
        metadata["scripts"] = {source.stem: "dt_tools:main" for source in sources}


class Install(BuildHookInterface):
    def initialize(self, version, build_data):
        objects = os.environ.get("DT_BUILD", "build/wheel/objects")
        prefix = os.path.join(self.root, objects, "prefix")
        shutil.rmtree(prefix, ignore_errors=True)
        subprocess.run(["make", "-s", f"B={objects}", *SETTINGS, "PREFIX=", f"DESTDIR={prefix}",
                        "install"], cwd=self.root, check=True)
        os.remove(os.path.join(prefix, "lib", "libdt.so"))  # a wheel has no links
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data.update(pure_python=False, tag=f"py3-none-{platform}")
        build_data["force_include"][prefix] = "dt/_prefix"
