#!/usr/bin/env bash
# Usage: scripts/ci/tools.sh <tool>…
#
# Installs what the tests use and the machine lacks, on Debian or Ubuntu: `server`, `openssl`, `compiler`, `spin`, `docker`,
# `jvm`, `chromium`, `databases`.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo --preserve-env=DEBIAN_FRONTEND "$@"; fi
}

updated=false
install() {
  "$updated" || as_root apt-get update -qq
  updated=true
  as_root apt-get install -qq --yes --no-install-recommends "$@"
}

for tool in "$@"; do
  case $tool in
    server) command -v redis-server >/dev/null || install redis-server ;;
    openssl) command -v openssl >/dev/null || install openssl ;;
    # Some faults of the chaos run need a C compiler, and are left out where there is none.
    compiler) command -v cc >/dev/null || install gcc libc6-dev ;;
    # The models are checked by it, and are left out where there is none.
    spin) command -v spin >/dev/null || install spin ;;
    # Newer Debians have the client in a package of its own.
    docker) command -v dockerd >/dev/null || install docker.io $(apt-cache pkgnames docker-cli | grep -x docker-cli) ;;
    # Without it the tests of the board in a browser are left out.
    chromium) { command -v chromium || command -v google-chrome; } >/dev/null || install chromium ;;
    databases)
      { [ -d /usr/lib/postgresql ] && command -v mariadbd; } >/dev/null || install postgresql mariadb-server
      ;;
    jvm) { command -v mvn && command -v javac; } >/dev/null || install default-jdk-headless maven ;;
    debootstrap) command -v debootstrap >/dev/null || install debootstrap ;;
    *) echo "No such tool: $tool" >&2 && exit 64 ;;
  esac
done
