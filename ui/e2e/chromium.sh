#!/usr/bin/env bash
# Says where Chromium is; as root on Debian it is installed where it is missing.
set -euo pipefail
find_it() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
if ! find_it; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "needs Chromium, on the PATH as chromium" >&2
        exit 1
    fi
    { apt-get update -qq && apt-get install -y -qq chromium; } >&2
    find_it
fi
