# shellcheck shell=bash
# What scripts that test have in common: sourced. They set `work`, a folder of their own, and `passed` and `failed` to 0;
# `limit` is how many seconds `await` waits.

verify() {  # WHAT COMMAND…: it passes when the command ends with 0; its output is shown when it does not.
  local what=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    echo "FAILED  $what"
    tail -n 20 "$work/log" | sed 's/^/        /'
  fi
}

equal() { [ "$1" = "$2" ] || { echo "expected '$2', found '$1'"; return 1; }; }

await() {  # COMMAND…: it is run until it ends with 0.
  local until=$((SECONDS + limit))
  until "$@" >"$work/log.await" 2>&1; do
    [ $SECONDS -lt $until ] || { echo "waited $limit s for: $*"; cat "$work/log.await"; return 1; }
    sleep 0.1
  done
}

# Makes $root a bare Debian 12 with further PACKAGES, or a copy of the one at BASE, and has apt work there as here. /proc,
# /sys and /dev are mounted in it.
make_bare_root() {  # BASE-OR-EMPTY PACKAGES
  local base=$1 folder
  if [ -z "$base" ]; then
    base=$work/base
    debootstrap --variant=minbase --include="$2" bookworm "$base" \
      "$(apt-cache policy bash | grep -oE 'https?://[^ ]+' | head -1)" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 78; }
  fi
  cp -a "$base" "$root"
  cp -rL /etc/apt/sources.list* /etc/apt/apt.conf.d /etc/apt/preferences.d "$root/etc/apt/" 2>/dev/null || true
  cp -rL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  for folder in proc sys dev; do mount --rbind "/$folder" "$root/$folder"; done
  chroot "$root" update-ca-certificates >/dev/null 2>&1 || true
}
