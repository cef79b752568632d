# Real S3 servers on the loopback, for the scripts that source this: a Ceph cluster of one monitor and one OSD in memory
# with radosgw, and OpenStack Swift, which refuses conditions. Everything lies under the folder that is given. Needs
# root. Sets S3_KEY and S3_SECRET; stop_servers ends what was started. LOCKSTEP_STORE_MIB is the room of the OSD, S3_HOST
# the address at which radosgw listens.
S3_HOST=${S3_HOST:-127.0.0.1}

server_pids=()
start_server() {  # LOG COMMAND…: in the background.
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null &
  server_pids+=($!)
}

stop_servers() {  # The stores live in memory or in a folder that goes: nothing has to be saved.
  [ ${#server_pids[@]} -eq 0 ] || kill -KILL "${server_pids[@]}" 2>/dev/null || true
  wait "${server_pids[@]}" 2>/dev/null || true
  server_pids=()
}

free_port() {  # The first of ten ports in a row that nobody listens on.
  local port=$((20000 + RANDOM % 20000))
  while ss -Htln | awk -v from="$port" '{ sub(/.*:/, "", $4); if ($4 >= from && $4 < from + 10) found = 1 }
    END { exit !found }'; do
    port=$((20000 + RANDOM % 20000))
  done
  echo "$port"
}

wait_until() {  # SECONDS COMMAND…
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

ceph_bucket() {  # PORT NAME
  curl -sSf -o /dev/null --aws-sigv4 aws:amz:us-east-1:s3 --user "$S3_KEY:$S3_SECRET" \
    -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -X PUT "http://$S3_HOST:$1/$2"
}

ceph_config() {  # FOLDER PORT ID
  cat <<CONFIG
[global]
fsid = $3
mon host = [v2:127.0.0.1:$(($2 + 2)),v1:127.0.0.1:$(($2 + 3))]
public addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
auth allow insecure global id reclaim = false
ms mon client mode = crc
mon allow pool size one = true
mon data avail crit = 0
mon data avail warn = 0
mon max pg per osd = 1000
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pg autoscale mode = off
osd objectstore = memstore
memstore device bytes = $((${LOCKSTEP_STORE_MIB:-1024} << 20))
paxos propose interval = 0.05
paxos min wait = 0.01
mon data = $1/mon
osd data = $1/osd
rgw data = $1/rgw
run dir = $1/run
admin socket = $1/run/\$name.\$pid.asok
log file = $1/log/\$name.log
rgw frontends = beast endpoint=$S3_HOST:$2 ssl_endpoint=$S3_HOST:$(($2 + 1)) ssl_certificate=$1/server.pem ssl_private_key=$1/server.key tcp_nodelay=1
CONFIG
}

start_radosgw() {  # FOLDER PORT: S3 at http://S3_HOST:PORT, and over TLS at PORT + 1 by the certificate server.pem.
  local folder=$1 port=$2 id osd
  S3_KEY=AKIACEPH S3_SECRET=secret-of-ceph
  mkdir -p "$folder"/{mon,osd,rgw,run,log}
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
    -keyout "$folder/server.key" -out "$folder/server.pem" 2>/dev/null
  id=$(cat /proc/sys/kernel/random/uuid)
  osd=$(cat /proc/sys/kernel/random/uuid)
  export CEPH_CONF=$folder/ceph.conf
  ceph_config "$folder" "$port" "$id" >"$CEPH_CONF"
  monmaptool --create --fsid "$id" --addv a "[v2:127.0.0.1:$((port + 2)),v1:127.0.0.1:$((port + 3))]" "$folder/map" >/dev/null
  ceph-mon -i a --mkfs --monmap "$folder/map" 2>/dev/null
  start_server "$folder/log/mon.out" ceph-mon -f -i a
  timeout 60 ceph osd new "$osd" >/dev/null
  ceph-osd -i 0 --mkfs --osd-uuid "$osd" 2>/dev/null
  start_server "$folder/log/osd.out" ceph-osd -f -i 0
  start_server "$folder/log/rgw.out" radosgw -f -n client.rgw.a
  wait_until 90 curl -sf "http://$S3_HOST:$port/"
  timeout 60 radosgw-admin user create --uid=tests --display-name=tests --access-key="$S3_KEY" --secret="$S3_SECRET" \
    >/dev/null 2>"$folder/log/admin.out"
}

swift_config() {  # FOLDER PORT
  cat <<CONFIG
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $2
user = root
swift_dir = $1/etc
workers = 0
log_address = $1/none
[pipeline:main]
pipeline = catch_errors proxy-logging cache listing_formats bulk s3api tempauth slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:$(($2 + 4))
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
s3_acl = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:proxy-logging]
use = egg:swift#proxy_logging
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
CONFIG
}

start_swift() {  # FOLDER PORT: S3 at http://127.0.0.1:PORT.
  local folder=$1 port=$2 ring at=$2
  S3_KEY=test:tester S3_SECRET=testing
  mkdir -p "$folder"/{etc,disks/one}
  printf '[swift-hash]\nswift_hash_path_suffix = a\nswift_hash_path_prefix = b\n' >"$folder/etc/swift.conf"
  for ring in account container object; do
    at=$((at + 1))
    (
      cd "$folder/etc"
      swift-ring-builder $ring.builder create 2 1 1
      swift-ring-builder $ring.builder add "r1z1-127.0.0.1:$at/one" 1
      swift-ring-builder $ring.builder rebalance
    ) >/dev/null 2>&1 || true  # it warns by its exit code
    printf '[DEFAULT]\nbind_ip = 127.0.0.1\nbind_port = %s\nuser = root\nswift_dir = %s\ndevices = %s\n' \
      "$at" "$folder/etc" "$folder/disks" >"$folder/etc/$ring.conf"
    printf 'mount_check = false\nworkers = 0\nlog_address = %s\n[pipeline:main]\npipeline = %s-server\n' \
      "$folder/none" $ring >>"$folder/etc/$ring.conf"
    printf '[app:%s-server]\nuse = egg:swift#%s\n' $ring $ring >>"$folder/etc/$ring.conf"
  done
  swift_config "$folder" "$port" >"$folder/etc/proxy.conf"
  start_server "$folder/memcached.out" memcached -u root -l 127.0.0.1 -p $((port + 4)) -m 16
  for ring in account container object proxy; do
    start_server "$folder/$ring.out" env SWIFT_DIR="$folder/etc" swift-$ring-server "$folder/etc/$ring.conf"
  done
  wait_until 60 curl -s "http://127.0.0.1:$port/"
}

swift_bucket() {  # PORT NAME: by Swift's own API; curl cannot sign for a key that has a ':'.
  local token
  token=$(curl -sS -o /dev/null -D - -H "X-Auth-User: $S3_KEY" -H "X-Auth-Key: $S3_SECRET" \
    "http://127.0.0.1:$1/auth/v1.0" | tr -d '\r' | awk 'tolower($1) == "x-auth-token:" { print $2 }')
  curl -sSf -o /dev/null -X PUT -H "X-Auth-Token: $token" "http://127.0.0.1:$1/v1/AUTH_test/$2"
}
