#!/usr/bin/env bash
# Usage: scripts/ci/server.sh [image]
#
# Puts the server that the tests start on the PATH: the program of an image, such as redis:8 or valkey/valkey:9, or
# without one the program of the distribution, where there is none yet. LOCK_CI_BIN is the folder for the program.
set -euo pipefail

image=${1:-}
if [ -z "$image" ]; then
  exec "$(dirname "$0")/tools.sh" server
fi

folder=${LOCK_CI_BIN:-/usr/local/bin}
files=$(mktemp -d)
container=$(docker create "$image")
trap 'docker rm "$container" >/dev/null; rm -rf "$files"' EXIT

case $image in
  *valkey*) program=valkey-server ;;
  *) program=redis-server ;;
esac
docker cp --follow-link "$container:/usr/local/bin/$program" "$files/$program"

copy=(install --mode=755 "$files/$program" "$folder/$program")
if [ -w "$folder" ]; then "${copy[@]}"; else sudo "${copy[@]}"; fi
# Fails where the program does not run on this system.
"$folder/$program" --version
# The tests prefer a redis-server to a valkey-server.
if [ "$program" = valkey-server ] && command -v redis-server >/dev/null; then
  echo "A redis-server is on the PATH, and the tests would start it: $(command -v redis-server)" >&2
  exit 1
fi
