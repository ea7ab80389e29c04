#!/usr/bin/env bash
# A Ceph cluster of one node for tests: a monitor, one OSD in memory, and a gateway that speaks S3; all on 127.0.0.1 and below one directory.
#
#   ceph-node.sh start DIR [PID]   starts it, or joins the one that runs there; it ends when no process that asked for it (PID; by
#                                  default the caller) has been alive for LINGER_S, or after LIFE_S
#   ceph-node.sh stop DIR          ends it and removes DIR
#
# CEPH_NODE_MEMORY_BYTES: what the OSD stores at most.
#
# What clients need stands in DIR: ceph.conf (with the keyring of client.admin), and s3.env (endpoint, access key, secret key).
# Pools: `strata` (I/O) and `other`; size 1. `start` fails with 3 where packages are missing.
set -euo pipefail

LINGER_S=${CEPH_NODE_LINGER_S:-20}
LIFE_S=${CEPH_NODE_LIFE_S:-3600}
MEMORY_BYTES=${CEPH_NODE_MEMORY_BYTES:-805306368}
# Longest time that a step may take.
STEP_S=${CEPH_NODE_STEP_S:-120}
PACKAGES=(ceph-mon ceph-osd ceph-common radosgw)
ACCESS_KEY=stratatest
SECRET_KEY=strata-test-secret-of-one-node

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
fail() { echo "ceph-node: $*" >&2; exit 1; }

[ $# -ge 2 ] || usage
command=$1
dir=$(realpath -m "$2")
PATH=$PATH:/usr/sbin:/sbin

# Runs a client of the cluster; nothing waits for ever.
client() { timeout "$STEP_S" "$@" --conf "$dir/ceph.conf" </dev/null; }

# Ends the start: what did not come up, in one line with the last error of that daemon's log; the log itself goes with the directory.
fail_with_log() {
    local name=$1 said=$2
    fail "$said: $(grep -E ' -1 |[Ee]rror[: ]' "$dir/log/$name" | tail -n 3 | cut -c 1-300 | paste -sd '|')"
}

# Waits until a command succeeds, as long as its daemon lives.
wait_for() {
    local name=$1 what=$2 deadline=$((SECONDS + STEP_S))
    shift 2
    until "$@" >/dev/null 2>&1; do
        kill -0 "$(cat "$dir/pid/$name")" 2>/dev/null || fail_with_log "$name" "$what ended by itself"
        [ $SECONDS -lt $deadline ] || fail_with_log "$name" "$what did not come up in $STEP_S s"
        sleep 0.1
    done
}

free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Whether the process of a pid file is that daemon (numbers are used again).
is_ours() { [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "$dir/ceph.conf"; }

daemon() {
    local name=$1
    shift
    setsid timeout "$LIFE_S" "$@" -f --conf "$dir/ceph.conf" </dev/null >>"$dir/log/$name" 2>&1 9>&- &
    echo $! >"$dir/pid/$name"
}

write_configuration() {
    local monitor=$1 gateway=$2 fsid=$3
    cat >"$dir/ceph.conf" <<CONF
[global]
fsid = $fsid
mon_host = [v2:127.0.0.1:$monitor/0]
mon_initial_members = a
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
keyring = $dir/keyring
run_dir = $dir
admin_socket =
crash_dir = $dir/crash
log_file =
log_to_stderr = true
err_to_stderr = true
mon_cluster_log_to_file = false
mon_cluster_log_to_stderr = false
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
mon_allow_pool_delete = true
mon_max_pg_per_osd = 1000
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
ms_bind_ipv6 = false

[mon]
mon_data = $dir/mon
# The data are small: the monitor must not end because other files fill the disk.
mon_data_avail_crit = -1
mon_data_avail_warn = 2

[osd]
osd_data = $dir/osd
osd_objectstore = memstore
memstore_device_bytes = $MEMORY_BYTES
osd_memory_target = 939524096
osd_min_pg_log_entries = 20
osd_max_pg_log_entries = 40
osd_pg_log_dups_tracked = 20
osd_op_num_shards = 2
osd_op_num_threads_per_shard = 1

[client.rgw]
rgw_data = $dir/rgw
rgw_frontends = beast endpoint=127.0.0.1:$gateway
rgw_thread_pool_size = 64
rgw_enable_usage_log = false
rgw_enable_gc_threads = false
rgw_enable_lc_threads = false
rgw_run_sync_thread = false
CONF
}

start_node() {
    local monitor gateway fsid
    fsid=$(cat /proc/sys/kernel/random/uuid)
    monitor=$(free_port)
    gateway=$(free_port)
    rm -rf "$dir/mon" "$dir/osd" "$dir/rgw" "$dir/log" "$dir/pid" "$dir/keyring" "$dir/s3.env" "$dir/monmap"
    mkdir -p "$dir"/{mon,osd,rgw,log,pid,crash}
    write_configuration "$monitor" "$gateway" "$fsid"
    ceph-authtool --create-keyring "$dir/keyring" --gen-key -n mon. --cap mon 'allow *' >/dev/null
    ceph-authtool "$dir/keyring" --gen-key -n client.admin \
        --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' >/dev/null
    ceph-authtool "$dir/keyring" --gen-key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *' >/dev/null
    ceph-authtool "$dir/keyring" --gen-key -n client.rgw --cap mon 'allow rw' --cap osd 'allow rwx' >/dev/null
    monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$monitor/0]" "$dir/monmap" >/dev/null 2>>"$dir/log/mon"
    ceph-mon --mkfs -i a --conf "$dir/ceph.conf" --monmap "$dir/monmap" --keyring "$dir/keyring" >>"$dir/log/mon" 2>&1 ||
        fail_with_log mon "the monitor's store could not be made"
    daemon mon ceph-mon -i a
    wait_for mon "the monitor" listens "$monitor"
    local uuid
    uuid=$(cat /proc/sys/kernel/random/uuid)
    client ceph osd new "$uuid" >/dev/null 2>>"$dir/log/setup" || fail_with_log setup "the monitor did not take an OSD"
    ceph-osd -i 0 --mkfs --osd-uuid "$uuid" --conf "$dir/ceph.conf" >>"$dir/log/osd" 2>&1 ||
        fail_with_log osd "the OSD's store could not be made"
    daemon osd ceph-osd -i 0
    { client ceph osd pool create strata 8 && client ceph osd pool create other 4; } >/dev/null 2>>"$dir/log/setup" ||
        fail_with_log setup "the pools could not be made"
    # An object that can be written: placement groups are active.
    wait_for osd "the OSD" client rados -p strata create probe
    client rados -p strata rm probe
    client radosgw-admin user create --uid strata --display-name strata --access-key "$ACCESS_KEY" \
        --secret-key "$SECRET_KEY" >/dev/null 2>>"$dir/log/setup" || fail_with_log setup "the S3 user could not be made"
    daemon rgw radosgw -n client.rgw
    wait_for rgw "the gateway" listens "$gateway"
    printf 'ENDPOINT=http://127.0.0.1:%s\nACCESS_KEY=%s\nSECRET_KEY=%s\n' "$gateway" "$ACCESS_KEY" "$SECRET_KEY" >"$dir/s3.env"
    setsid bash "${BASH_SOURCE[0]}" supervise "$dir" </dev/null >/dev/null 2>&1 9>&- &
    echo $! >"$dir/pid/supervisor"
}

# Whether a node is up: its last step is the file of the gateway's keys, and all its daemons live.
is_up() {
    local name
    [ -s "$dir/s3.env" ] || return 1
    for name in mon osd rgw; do
        is_ours "$(cat "$dir/pid/$name" 2>/dev/null || echo 0)" || return 1
    done
}

end_daemons() {
    local name pid
    for name in rgw osd mon; do
        pid=$(cat "$dir/pid/$name" 2>/dev/null) || continue
        # `timeout` hands the signal on; data in memory needs no farewell.
        is_ours "$pid" && kill -KILL -- "-$pid" 2>/dev/null || true
    done
}

# Ends the node when nobody who asked for it lives any more.
supervise() {
    local idle=0 age=0 user
    while [ $idle -lt "$LINGER_S" ] && [ $age -lt "$LIFE_S" ] && [ -d "$dir/users" ]; do
        sleep 1
        idle=$((idle + 1)) age=$((age + 1))
        for user in "$dir"/users/*; do
            [ -d "/proc/${user##*/}" ] && idle=0
        done
    done
    exec 9>"$dir.lock"
    flock 9
    # Somebody may have joined meanwhile.
    for user in "$dir"/users/*; do
        if [ $age -lt "$LIFE_S" ] && [ -d "/proc/${user##*/}" ]; then
            exec 9>&-
            supervise
            return
        fi
    done
    end_daemons
    rm -rf "$dir" "$dir.lock"
}

case $command in
start)
    for tool in ceph-mon ceph-osd ceph rados radosgw radosgw-admin ceph-authtool; do
        command -v "$tool" >/dev/null || { echo "ceph-node: $tool is missing: install ${PACKAGES[*]}" >&2; exit 3; }
    done
    mkdir -p "$dir/users"
    exec 9>"$dir.lock"
    flock -w $((4 * STEP_S)) 9 || fail "another start at $dir does not end"
    mkdir -p "$dir/users"
    : >"$dir/users/${3:-$PPID}"
    if ! is_up; then
        end_daemons
        trap end_daemons EXIT
        start_node
        trap - EXIT
    fi
    echo "$dir/ceph.conf"
    ;;
stop)
    exec 9>"$dir.lock"
    flock 9
    end_daemons
    supervisor=$(cat "$dir/pid/supervisor" 2>/dev/null || echo 0)
    [ "$supervisor" -gt 1 ] && grep -qF ceph-node "/proc/$supervisor/cmdline" 2>/dev/null && kill "$supervisor" || true
    rm -rf "$dir" "$dir.lock"
    ;;
supervise) supervise ;;
*) usage ;;
esac
