# The machine that commands of documents run on: a directory. Sourced by documents.rs, which has set MACHINE, STRATA, ROOT, LOOP and S3.
set -u
export HOME=$PWD XDG_STATE_HOME=$PWD/state CRT_ATTACH_INFO_PATH=$PWD PATH=$PWD/bin:$PATH
# Below the ports that the kernel gives out.
export PORT=$((20000 + $$ % 12000))
mkdir -p bin mnt/{test,fs,smb/mydir,a,b,pmem0,tree} scratch/bench lustre db vol shared shm history
for name in strata ior elbencho; do ln -s "$STRATA" "bin/$name"; done
cp -r "$ROOT/docs" docs
sed -i -E 's/^size = .*/size = "16m"/; s/^time = .*/time = "200ms"/' docs/examples/*.toml
(
    umask 077
    echo 0123456789abcdef0123456789abcdef >token
    cp token secret
)

# Files of the reader's.
for file in old new nightly job; do truncate -s 1m $file.dat; done
job() { printf 'targets = ["%s"]\nsize = "1m"\n[[phase]]\nname = "a"\nop = "randread"\nblock_size = "4k"\ntime = "200ms"\n' "$1"; }
for file in one two all job; do
    printf '[%s]\nioengine=psync\nfilename=%s.dat\nsize=1m\nrw=write\nbs=64k\n' $file $file >$file.fio
done
for file in old new nightly job; do job $file.dat >$file.toml; done
strata app show checkpoint --toml | sed 's/64MiB/64KiB/' >mine.toml
strata app show dlio --toml >unet3d.yaml
cp unet3d.yaml my.yaml
cat >llama3_8b.yaml <<'YAML'
model: {name: llama3_8b, num_layers: 2, transformer: {vocab_size: 512, hidden_size: 64, ffn_hidden_size: 128}}
workflow: {train: False, checkpoint: True}
checkpoint: {num_checkpoints_write: 2, num_checkpoints_read: 1, fsync: True}
YAML
echo local:2 >hosts.txt
for file in before after record a b history/baseline; do
    strata media null: --op nop --count 1000 --live none --json $file.json >/dev/null
done
strata run nightly.toml --live none --json history/baseline.json --out after >/dev/null
truncate -s 8m vol/file
printf '[global]\ndatadir = io500\nresultdir = results\n[debug]\nstonewall-time = 1\n[find]\n' >config.ini
printf 'IOR START\ntestFile = ior.dat\nblockSize = 1m\ntransferSize = 64k\nRUN\nIOR STOP\n' >tests.ior
echo GRIB >template.grib

failed=0

# Runs the command of standard input: what serves in the background until it does, the others to their end.
run() {
    cat >step.sh
    local command
    command=$(sed -E 's/ +# .*$//' step.sh)
    case $command in
    strata\ engine* | strata\ service*)
        bash -c "exec ${command% &}" >server.log 2>&1 &
        for _ in $(seq 600); do
            grep -Eq ' serves |control ' server.log && return
            sleep 0.05
        done
        told=server.log
        ;;
    *)
        timeout 300 bash step.sh >out.log 2>&1 && return
        told=out.log
        ;;
    esac
    echo "  $command"
    tail -n 3 $told | sed 's/^/      /'
    failed=1
}

finish() {
    # shellcheck disable=SC2046
    kill $(jobs -p) 2>/dev/null
    wait
    exit $failed
}
