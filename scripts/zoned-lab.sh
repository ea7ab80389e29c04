#!/bin/sh
# A machine in software with an emulated zoned NVMe drive (ZNS), in which a script runs as root: for what `make test` cannot have,
# a kernel with zones. Needs qemu-system-x86 (7.0 or newer), busybox-static, kmod, cpio, and a kernel package, which is unpacked and not installed:
#   apt-get download linux-image-amd64's package; dpkg-deb -x linux-image-*.deb KERNEL
#
# usage: zoned-lab.sh KERNEL SCRIPT [SHARE]
#   KERNEL  directory that the kernel package was unpacked to
#   SCRIPT  run by sh in the guest; /dev/nvme0n1 is the drive, /dev/nvme1n1 one without zones; the guest's / is this machine's, read-only
#   SHARE   directory of this machine that the guest writes to, at /share
# environment: ZONE=8M CAPACITY=6M OPEN=8 ACTIVE=12 SIZE=512M of the drive; MEMORY=3G, CPUS=2, LIMIT=900 (seconds),
#   ACCELERATOR="-accel kvm -cpu host" where that works: the default needs no /dev/kvm
set -eu
PATH=$PATH:/usr/sbin:/sbin
[ $# -ge 2 ] || { sed -n '2,12p' "$0" >&2; exit 2; }
kernel=$(realpath "$1") script=$(realpath "$2") share=$(realpath "${3:-.}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
release=$(ls "$kernel/lib/modules" | head -n 1)
[ -e "$kernel/lib/modules/$release/modules.dep" ] || depmod -b "$kernel" "$release"

mkdir -p "$work/root/bin" "$work/root/modules"
cp "$(command -v busybox)" "$work/root/bin/busybox"
for module in 9p 9pnet_virtio virtio_pci overlay nvme null_blk; do
    modprobe -d "$kernel" -S "$release" --show-depends "$module" 2>/dev/null | while read -r verb path options; do
        [ "$verb" = insmod ] || continue
        name=$(basename "$path")
        [ -e "$work/root/modules/$name" ] || { cp "$path" "$work/root/modules/$name"; echo "$name" >>"$work/root/modules/order"; }
    done
done
cat >"$work/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /low /up /new
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
while read -r name; do
    case $name in null_blk*) insmod /modules/$name nr_devices=0 ;; *) insmod /modules/$name ;; esac
done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,ro,cache=loose host /low
mount -t tmpfs tmpfs /up
mkdir /up/upper /up/work
mount -t overlay -o lowerdir=/low,upperdir=/up/upper,workdir=/up/work overlay /new
mkdir -p /new/share
for place in proc sys dev; do mount --move /$place /new/$place; done
mount -t tmpfs tmpfs /new/tmp
mkdir -p /new/dev/shm; mount -t tmpfs tmpfs /new/dev/shm
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /new/share
cp /script /new/tmp/script
ip link set lo up
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot /new /bin/sh /tmp/script
echo "lab: exit $?"
sync
echo o >/proc/sysrq-trigger; echo o >/new/proc/sysrq-trigger
sleep 5
INIT
cp "$script" "$work/root/script"
chmod +x "$work/root/init"
(cd "$work/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd"
truncate -s "${SIZE:-512M}" "$work/zoned" "$work/plain"

# shellcheck disable=SC2086
timeout "${LIMIT:-900}" qemu-system-x86_64 ${ACCELERATOR:--accel tcg,thread=multi -cpu max} -smp "${CPUS:-2}" -m "${MEMORY:-3G}" -nographic -no-reboot \
    -kernel "$kernel/boot/vmlinuz-$release" -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1" \
    -fsdev "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap" \
    -device virtio-9p-pci,fsdev=host,mount_tag=host \
    -fsdev "local,id=share,path=$share,security_model=none" -device virtio-9p-pci,fsdev=share,mount_tag=share \
    -drive "file=$work/zoned,format=raw,if=none,id=zoned" -device nvme,id=nvme0,serial=zoned \
    -device "nvme-ns,drive=zoned,bus=nvme0,zoned=true,zoned.zone_size=${ZONE:-8M},zoned.zone_capacity=${CAPACITY:-6M},zoned.max_open=${OPEN:-8},zoned.max_active=${ACTIVE:-12}" \
    -drive "file=$work/plain,format=raw,if=none,id=plain" -device nvme,serial=plain,drive=plain
