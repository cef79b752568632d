# shellcheck shell=bash
# Hosts on one switch, as network namespaces of this machine: sourced by scripts that cut and slow links between real
# processes. Host I has the address 10.77.0.(I+1), the caller itself 10.77.0.254. Nothing outside is touched: the caller
# has to run in a network namespace of its own (enter_own_network), and all of it vanishes with the last process in it.
# Needs iproute2 and util-linux, and root or user namespaces.

hosts_holder=()  # a process per host that keeps its namespace alive

# Starts the script again, with its arguments, in namespaces of its own. Returns where it already is in them; 1 where
# this machine does not allow them.
enter_own_network() {
  [ -z "${LOCKSTEP_OWN_NETWORK:-}" ] || return 0
  local words=(unshare --net --mount)
  "${words[@]}" true 2>/dev/null || words=(unshare --user --map-root-user --net --mount)
  "${words[@]}" ip link add name probe0 type bridge 2>/dev/null || return 1
  LOCKSTEP_OWN_NETWORK=1 exec "${words[@]}" "$BASH" "$0" "$@"
}

host_address() { echo "10.77.0.$(($1 + 1))"; }
host_ethernet() { printf '02:00:00:00:00:%02x' $(($1 + 1)); }

# In host I: a command that becomes the process itself, so that $! is its number.
in_host() { exec nsenter --target "${hosts_holder[$1]}" --net --uts "${@:2}"; }
on_host() { nsenter --target "${hosts_holder[$1]}" --net "${@:2}"; }

make_hosts() {  # COUNT
  local host pid
  ip link set lo up
  ip link add name switch0 type bridge
  ip address add 10.77.0.254/24 dev switch0
  ip link set switch0 up
  for ((host = 0; host < $1; host++)); do
    unshare --net --uts "$BASH" -c "hostname host$host; exec sleep infinity" &
    pid=$!
    hosts_holder[host]=$pid
    until [ "$(cat "/proc/$pid/comm")" = sleep ]; do sleep 0.01; done
    ip link add name "port$host" type veth peer name "cable$host" address "$(host_ethernet "$host")"
    ip link set "cable$host" netns "$pid"
    ip link set "port$host" master switch0 up
    on_host "$host" ip link set lo up
    on_host "$host" ip link set "cable$host" name eth0
    on_host "$host" ip address add "$(host_address "$host")/24" dev eth0
    on_host "$host" ip link set eth0 up
  done
}

drop_hosts() { [ ${#hosts_holder[@]} -eq 0 ] || kill "${hosts_holder[@]}" 2>/dev/null || true; }

# Everything to and from the host is lost, and no side is told.
isolate() { ip link set "port$1" nomaster; }
rejoin() { ip link set "port$1" master switch0; }
# The cable is pulled: the host sees that its link is down.
unplug() { ip link set "port$1" down; }
plug() { ip link set "port$1" up; }
# What A sends to B is lost; what B sends to A arrives.
drop_to() { on_host "$1" ip neigh replace "$(host_address "$2")" lladdr 02:00:00:00:0f:ff dev eth0 nud permanent; }
deliver_to() { on_host "$1" ip neigh del "$(host_address "$2")" dev eth0 2>/dev/null || true; }
# The host sends and receives at most so much, as 20mbit.
slow_down() {
  tc qdisc replace dev "port$1" root tbf rate "$2" burst 64k latency 200ms
  on_host "$1" tc qdisc replace dev eth0 root tbf rate "$2" burst 64k latency 200ms
}
speed_up() {
  tc qdisc del dev "port$1" root 2>/dev/null || true
  on_host "$1" tc qdisc del dev eth0 root 2>/dev/null || true
}
# The host goes by another address; connections from the old one are dead.
readdress() {  # HOST OLD NEW
  on_host "$1" ip address del "$2/24" dev eth0
  on_host "$1" ip address add "$3/24" dev eth0
}
