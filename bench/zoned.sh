# Run by scripts/zoned-lab.sh in its guest: the same lines of fio and of strata's dialect on an emulated ZNS drive, after test-zbd-support
# of fio's repository. Prints a row a line: bytes moved, zone resets, exit status, and the conditions of the zones afterwards.
# The binary is /share/strata.
export TMPDIR=/tmp
cd /tmp
device=/dev/nvme0n1
echo mq-deadline >/sys/block/nvme0n1/queue/scheduler
states() { blkzone report $device | grep -o '([a-z]*)' | sort | uniq -c | awk '{printf "%s%s ", $1, $2}'; }
row() {
    moved=$(grep -aoE '(READ|WRITE|TRIM):.*io=[0-9.]+[A-Za-z]*' out | sed -E 's/:.*io=/=/' | tr '\n' ' ')
    resets=$(grep -aoE '[0-9]+ zone resets' out | awk '{sum += $1} END {print sum + 0}')
    echo "| $1 | $2 | $moved| $resets | $rc | $(states)|"
    [ $rc = 0 ] || grep -aE 'strata:|fio:|error' out | head -3 | cut -c1-200
}
both() {
    name=$1 fill=$2
    shift 2
    for tool in fio strata; do
        blkzone reset $device
        for zone in $fill; do
            dd if=/dev/zero of=$device bs=64k count="${zone#*:}" seek=$((${zone%:*} * 128)) oflag=direct 2>/dev/null
        done
        common="--name=x --filename=$device --direct=1 --zonemode=zbd --zero_buffers=1"
        if [ $tool = fio ]; then
            timeout 100 fio $common "$@" >out 2>&1
        else
            timeout 100 /share/strata as --destroy-data fio $common "$@" >out 2>&1
        fi
        rc=$?
        row "$name" $tool
    done
}
full="0:96 1:96 2:96 3:96 4:96 5:96 6:96 7:96 8:96 9:96 10:96 11:96"
uname -r
cat /sys/block/nvme0n1/queue/zoned
blkzone report -c 1 $device
both "sequential write" "" --rw=write --bs=64k
both "sequential write, full zones" "$full" --rw=write --bs=64k
both "sequential write, libaio, depth 8" "" --rw=write --bs=64k --ioengine=libaio --iodepth=8
both "sequential write from a write pointer" "0:40" --rw=write --bs=64k --size=16m
both "random write, 4 open" "" --rw=randwrite --bs=64k --max_open_zones=4 --io_size=24m --size=96m
both "random write, 8 jobs, 4 open" "" --rw=randwrite --bs=64k --max_open_zones=4 --numjobs=8 --io_size=4m --size=96m --group_reporting --thread
both "random write, 2 open for each of 2 jobs" "" --rw=randwrite --bs=64k --max_open_zones=8 --job_max_open_zones=2 --numjobs=2 --io_size=8m --size=96m --group_reporting --thread
both "sequential read" "0:96 1:40 3:96" --rw=read --bs=64k
both "random read below write pointers" "0:96 1:40 3:96" --rw=randread --bs=64k --io_size=4m --size=96m
both "random read beyond them" "0:96" --rw=randread --bs=64k --io_size=4m --size=96m --read_beyond_wp=1
both "reads and writes at random" "" --rw=randrw --bs=64k --io_size=8m --size=96m --ioengine=libaio --iodepth=4
both "block that does not divide the capacity" "" --rw=write --bs=80k --size=16m
both "trim" "$full" --rw=trim --bs=8m
both "resets before zones are full" "$full" --rw=randwrite --bs=64k --io_size=8m --size=96m --zone_reset_threshold=.3 --zone_reset_frequency=.1
