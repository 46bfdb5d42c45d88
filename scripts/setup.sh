#!/usr/bin/env bash
# Installs what the build and the tests need: Debian's packages, and pinned wheels in .venv. Run by `make setup`.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}

# ── Debian packages ──
missing=() optional=()
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }
have_debian_packages() {
  missing=() optional=()
  while read -r mark name; do
    case "$mark" in
      '' | '#'*) ;;
      '?') installed "$name" || optional+=("$name") ;;
      *) installed "$mark" || missing+=("$mark") ;;
    esac
  done < scripts/debian-packages.txt
}

if command -v dpkg-query > /dev/null; then
  have_debian_packages
  if [ "$(id -u)" = 0 ] && [ $((${#missing[@]} + ${#optional[@]})) -gt 0 ]; then
    echo "Installing Debian packages: ${missing[*]} ${optional[*]}"
    apt-get update -qq || true
    if [ ${#missing[@]} -gt 0 ]; then
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
    fi
    for name in "${optional[@]}"; do
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$name" > /dev/null ||
        echo "Going on without $name: builds are slower."
    done
    have_debian_packages
  fi
  if [ ${#missing[@]} -gt 0 ]; then
    {
      echo "Missing Debian packages; install them and run this again:"
      echo "    sudo apt-get install ${missing[*]} ${optional[*]}"
    } >&2
    exit 1
  fi
  [ ${#optional[@]} = 0 ] || echo "Builds are faster with: ${optional[*]} (sudo apt-get install ${optional[*]})"
else
  echo "This is no Debian system: scripts/debian-packages.txt names what the build needs." >&2
fi

# ── Wheels ──
if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "$PYTHON is $("$PYTHON" --version 2>&1); Python 3.11 or newer is needed (set PYTHON to another one)." >&2
  exit 1
fi
# A virtual environment does not survive moving its folder: one that can't run pip is made again.
if ! .venv/bin/python -m pip --version > /dev/null 2>&1; then
  rm -rf .venv
  "$PYTHON" -m venv .venv
fi
pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint requirements/constraints.txt)
"${pip[@]}" --requirement requirements/build.txt --requirement requirements/test.txt
"${pip[@]}" --no-deps --requirement requirements/demo.txt
touch .venv/setup.stamp
