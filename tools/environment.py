# SPDX-License-Identifier: Apache-2.0
"""The development environment: system packages, virtual environment, build, editable install.

Only the standard library: this runs before anything is installed.
"""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("TORCH_TPU_VENV") or ROOT / ".venv").resolve()
PYTHON = VENV / "bin" / "python"

# What must be there, and the Debian package that brings it.
_COMMANDS = {"g++": "g++", "ccache": "ccache", "git": "git"}
_HEADERS = {
    "fmt/format.h": "libfmt-dev",
    "xxhash.h": "libxxhash-dev",
    "gtest/gtest.h": "libgtest-dev",
    "benchmark/benchmark.h": "libbenchmark-dev",
}
_BUILD_TOOLS = ("cmake", "ninja", "jaxlib")  # of jaxlib only headers


def say(text: str) -> None:
    print(f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text, flush=True)


def prepare(*extras: str, build: bool = True) -> None:
    """Bring the environment up to date for these extras of pyproject.toml, and build."""
    _install_system_packages()
    _make_venv()
    _install(_requirements(extras))
    if build:
        build_preset("dev")
        _install_editable()


def environment() -> dict[str, str]:
    """The children's variables: the venv first on PATH, ccache made to accept our PCH."""
    env = dict(os.environ)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env['PATH']}"
    env["VIRTUAL_ENV"] = str(VENV)
    env.setdefault(
        "CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,include_file_ctime"
    )
    return env


def status(*command: str, **variables: str) -> int:
    """Run a command of the environment from the root; its status."""
    return subprocess.run(command, cwd=ROOT, env=environment() | variables).returncode


def run(*command: str, **variables: str) -> None:
    """The same, leaving with the status if it fails."""
    failure = status(*command, **variables)
    if failure:
        sys.exit(failure)


def run_python(*args: str, **variables: str) -> None:
    run(str(PYTHON), *args, **variables)


def build_preset(preset: str) -> None:
    """Configure if new, then build; ninja decides what there is to do."""
    folder = ROOT / "build" / preset
    if not (folder / "build.ninja").exists():
        say(f"configuring build/{preset}")
        run("cmake", "--preset", preset, f"-DPython3_EXECUTABLE={PYTHON}")
    started = time.monotonic()
    run("cmake", "--build", "--preset", preset, "--parallel", str(os.cpu_count() or 2))
    if time.monotonic() - started > 2:
        say(f"built build/{preset} in {time.monotonic() - started:.0f} s")


def sanitized_tests() -> int:
    """Tests of core and lower with address and undefined-behaviour sanitizers."""
    build_preset("asan")
    # The plugin's own start-up allocations live as long as the process.
    return status("ctest", "--preset", "asan", "--parallel", "2", ASAN_OPTIONS="detect_leaks=0")


def _install_system_packages() -> None:
    include = [Path("/usr/include"), Path("/usr/local/include")]
    missing = [package for name, package in _COMMANDS.items() if not shutil.which(name)]
    for header, package in _HEADERS.items():
        if not any((folder / header).exists() for folder in include):
            missing.append(package)
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        missing.append("python3-dev")
    if importlib.util.find_spec("ensurepip") is None:
        missing.append("python3-venv")
    if not missing:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit("Please install first:  sudo " + " ".join(command))
    say(f"installing system packages: {' '.join(missing)}")
    quiet = {
        "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        "stdout": subprocess.DEVNULL,
    }
    subprocess.run(["apt-get", "update"], check=True, **quiet)  # type: ignore[call-overload]
    subprocess.run(command, check=True, **quiet)  # type: ignore[call-overload]


def _make_venv() -> None:
    if not PYTHON.exists():
        say(f"making the environment {VENV}")
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)


def _requirements(extras: tuple[str, ...]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    wanted = list(project["dependencies"])
    wanted += [r for r in optional["dev"] if r.partition("=")[0] in _BUILD_TOOLS]
    for extra in extras:
        wanted += optional[extra]
    return list(dict.fromkeys(wanted))


def _install(requirements: list[str]) -> None:
    """pip-install what this environment was not given before; the pins make repeating needless."""
    stamp = VENV / "torch_tpu_requirements.json"
    have = json.loads(stamp.read_text()) if stamp.exists() else []
    missing = [r for r in requirements if r not in have]
    if not missing:
        return
    say(f"installing Python packages: {' '.join(missing)}")
    # torch is repeated so that nothing can bring another version of it along.
    torch = next(r for r in requirements if r.startswith("torch=="))
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, torch, *missing], check=True)
    stamp.write_text(json.dumps(sorted({*have, *missing}), indent=1))


def _install_editable() -> None:
    """Put python/ on the environment's path with the built extension and the entry point."""
    built = next((ROOT / "build" / "dev" / "backend").glob("_C.*.so"))
    link = ROOT / "python" / "torch_tpu" / built.name
    if not link.is_symlink() or link.resolve() != built:
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(built, link.parent))
    site = VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    source = (ROOT / "python" / "torch_tpu" / "__init__.py").read_text()
    version = source.partition('__version__ = "')[2].partition('"')[0]
    info = f"torch_tpu-{version}.dist-info"
    files = {
        "torch_tpu.pth": f"{ROOT / 'python'}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch_tpu\nVersion: {version}\n",
        f"{info}/entry_points.txt": "[torch.backends]\ntorch_tpu = torch_tpu._loader:load\n",
        f"{info}/INSTALLER": "./dev\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    for name, text in files.items():
        _write(site / name, text)


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
