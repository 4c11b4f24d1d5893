#!/usr/bin/env bash
# Makes a wheel of a configured build, installs it into a fresh virtual environment, and runs tests there.
#
#   python/wheel_test.sh BUILD_FOLDER PYTHON
#
# PYTHON has the packages of test/requirements.txt. Exits with 77 (skipped) if scikit-build-core isn't among them. The
# wheel that users get is built by scripts/wheel, with LLVM linked statically.
set -euo pipefail
build=$(realpath "$1")
python=$2
cd "$(dirname "$0")/.."
"$python" -c "import scikit_build_core" 2>/dev/null ||
  { echo "wheel_test: skipped: $python has no scikit-build-core" >&2; exit 77; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/package"
cp -rL python/tenon "$scratch/package/tenon"
find "$scratch/package/tenon" -name __pycache__ -prune -exec rm -rf {} +
cmake --install "$build" --component python --prefix "$scratch/package" --strip >"$scratch/install.log"
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$scratch" \
  --config-settings=wheel.cmake=false --config-settings=wheel.packages="$scratch/package/tenon" .
wheel=$(ls "$scratch"/tenon_compiler-*.whl)
echo "wheel_test: $(basename "$wheel"), $(($(stat -c %s "$wheel") / 1000 / 1000)) MB"

"$python" -m venv --without-pip "$scratch/venv"
site=$("$scratch/venv/bin/python" -c "import site; print(site.getsitepackages()[0])")
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index --target "$site" "$wheel"
packages=$("$python" -c "import site; print(site.getsitepackages()[0])")
echo "import sys; sys.path.append('$packages')" >"$site/packages_of_the_tests.pth"
cp -r python/tests "$scratch/tests"
cd "$scratch"
found=$("$scratch/venv/bin/python" -c "import tenon; print(tenon.__file__)")
[ "$found" = "$site/tenon/__init__.py" ] || { echo "wheel_test: imported $found" >&2; exit 1; }
"$scratch/venv/bin/python" -c "import importlib.metadata as m
assert m.version('tenon-compiler') and m.entry_points(group='torch_dynamo_backends', name='tenon')"
"$scratch/venv/bin/python" -m pytest -q -p no:cacheprovider tests/test_executable.py tests/test_processes.py
