# How sizes, counts and times of commands of documents are reduced for the test of documents.rs.
s/--size [14][GM]iB/--size 64KiB/g
s/--scm [0-9]+[gt]/--scm 256m/g
s/--nvme [0-9]+[gt]/--nvme 512m/g
s/-P [0-9]+G /-P 256M /g
s/(--dkeys|--files|-d|-n|-N|--repetitions) [0-9]{4,}/\1 100/g
s/(--size|--file-size|--bytes|-s)([ =])[0-9]+[gtG]/\1\28m/g
s/-s 256m/-s 8m/g
s/--value-size 1m/--value-size 16k/g
s/-b [0-9]+g /-b 4m /g
s/-s 10000000/-s 100/g
s/--time([ =])[0-9]+(ms|s|m|h)/--time\1200ms/g
s/--time 200ms --end-when-steady [^ ]+/--time 4s --end-when-steady iops:90%:2s/g
/strata drive /{/--size/!s/(strata drive [^#]*[^# ])( *(#.*)?)$/\1 --size 8m --round 20ms\2/}
s/(strata wal [^#]*[^# ])( *(#.*)?)$/\1 --commits 20 --rounds 2\2/
s/--rate 70k/--rate 1k/g
s/--runtime=[0-9]+/--runtime=1/g
s/(--timelimit|--stonewall|-D|-W) [0-9]+/\1 1/g
s/--repeat [0-9]+/--repeat 2/g
s/(depth=[0-9]+),[0-9,]*,([0-9]+) /\1,\2 /g
s/ranks=8,compute=2s/ranks=2,compute=20ms/g
s/particles=1000000/particles=10000,compute=10ms/g
s/(app dlio [^#]*--workload [^ ]+)/\1 --set dataset.record_length_bytes=100000,dataset.record_length_bytes_stdev=0,dataset.num_files_train=48,train.computation_time=0.01,train.epochs=1/
s/(app database [^#]*--set )/\1interval=20,pages=64,reads=20,dirty=20,/
s/dataset.num_files_train=500,/dataset.num_files_train=50,/
s/-q 128 -t 4/-q 16 -t 2/g
s/strata stack( --quick)?/strata stack --quick --size 64m --passes 2/g
s#(strata stack .*--dir) ([^ ]+)#mkdir -p \2 \&\& \1 \2#
# Loads that would last until their default ends.
/strata object [^#]*--op/{/--time/!s/(strata object [^#]*[^ #])( *(#.*)?)$/\1 --time 200ms\2/}
s/strata object recipes /strata object recipes --time 50ms --rounds 3 /
/--saturate/{/--time/!s/--saturate/--saturate --time 30ms/}
# Noise of short runs is no regression, and no lack of steadiness.
s/slower:[35]%/slower:100000%/g
/strata history check/{/--fail-if/!s/(strata history check [^#]*[^# ])( *(#.*)?)$/\1 --fail-if slower:100000%\2/}
# Hosts are processes of this machine, targets of a group those of one engine.
s/--targets [0-9]+/--targets 4/g
s/0-3:2-5/0:2-5/g
s/--hosts node\[[0-9-]+\]/--hosts local:2/g
s/--host-options node[^: ]*:/--host-options rank:1:/g
s/,cores=0-7/,cores=0/g
s/--hosts node17/--hosts local:1/g
s/--client=node[12]/--client=local:1/g
s/all.fio --client=local:1 --client=local:1/all.fio --client=local:1/
s/--listen 0.0.0.0:1611/--listen 127.0.0.1:0/
