package shell

import (
	"slices"
	"testing"
)

// TestTheOptionsOfWrappersDoNotHideTheProgram: whatever form an option has, the
// program behind it is seen.
func TestTheOptionsOfWrappersDoNotHideTheProgram(t *testing.T) {
	for _, script := range []string{
		"timeout -k5s 10 rm x", "timeout -k 5s 10 rm x", "timeout --kill-after 5 10 rm x", "timeout --kill 5 10 rm x", "timeout --sig KILL 10 rm x", "timeout -s9 10 rm x", "timeout -fpv 10 rm x", "timeout -vk5 10 rm x", "timeout --pres 10 rm x", "timeout -- 10 rm x",
		"env --unset X rm x", "env --uns X rm x", "env -uX rm x", "env --split='rm x'", "env --split-str='rm x'", "env -S'rm x'", "env -vS'rm x'", "env -S '-i rm x'", "env -S 'rm' x", "env -iS 'A=1 rm x'", "env - rm x", "env -i - A=1 rm x", "env --argv0 z rm x", "env -az rm x", "env --block-signal rm x", "env --chdir . rm x",
		"nice --adj 5 rm x", "nice --adjustment=5 rm x", "nice -5 rm x", "nice --5 rm x", "nice -n5 rm x", "nice -n 5 rm x", "nohup -- rm x", "setsid -fw rm x", "setsid --wait rm x", "stdbuf --outp L rm x", "stdbuf -oL -e0 rm x", "stdbuf -o L rm x",
		"flock --timeout 5 f rm x", "flock --wait 5 f rm x", "flock -w5 f rm x", "flock -nE 3 f rm x", "flock --conflict-exit-code 3 f rm x", "flock f -c 'rm x'", "flock f --command 'rm x'", "flock -s f rm x",
		"ionice --class 3 rm x", "ionice -c3 -n7 rm x", "ionice -tc 3 rm x", "chrt --sched-runtime 5 -o 0 rm x", "chrt -f 5 rm x", "taskset --cpu-list 0 rm x", "taskset -c 0 rm x", "taskset 1 rm x", "setarch -R rm x", "setarch x86_64 -R rm x", "setarch x86_64 rm x", "linux64 rm x", "linux32 -R rm x", "i386 rm x",
		"strace --trace none rm x", "strace -fo f rm x", "strace -ff -e none rm x", "strace -E A=1 rm x", "prlimit --nofile=1 rm x", "prlimit -n1 rm x", "command time -p rm x", "command time -f x rm x", "command time --form x rm x", "\\time -o f rm x", "/usr/bin/time -v rm x",
		"sudo -nEHu root rm x", "sudo --user root rm x", "sudo --us root rm x", "sudo -D /x rm x", "doas -n rm x", "doas -u root rm x", "exec -cla z rm x", "command -p -- rm x", "builtin command rm x", "xargs -n1 -P 4 rm <f", "xargs --max-a 1 rm <f", "xargs -d '\\n' rm <f", "watch -n1 rm x", "watch --interval 1 rm x", "watch -x rm x",
		"chronic -v rm x", "unbuffer -p rm x", "timeout 1 env nice -n 5 timeout --sig KILL 1 rm x", "/proc/self/exe -c 'rm x'", "/proc/$$/exe -c 'rm x'", "/dev/fd/3 x; rm x", "/lib64/ld-linux-x86-64.so.2 /bin/rm x", "fakeroot -- rm x", "caffeinate -i rm x",
	} {
		f := Parse(script, "")
		if !slices.Contains(names(f), "rm") && !slices.Contains(names(f), Unknown) {
			t.Errorf("%q: %v, dynamic %t", script, names(f), f.Dynamic)
		}
	}
}

// TestAnOptionThatIsNotKnownMakesTheCommandOpaque: it may take the next argument, so
// that another program runs than the one that seems to.
func TestAnOptionThatIsNotKnownMakesTheCommandOpaque(t *testing.T) {
	for _, script := range []string{
		"timeout --new-option 5 rm x", "timeout -Z 5 rm x", "env --new rm x", "nice -z rm x", "nohup -x ls", "stdbuf --x=1 ls", "flock --new f ls", "setarch --new ls", "xargs --new ls", "watch --new ls", "ionice -z ls", "exec -z ls", "command -z ls", "setsid -z ls", "strace --new ls",
		"sudo --new ls", "timeout $x ls", "timeout 5* ls", "env $x ls", "nice $x ls", "make --new-option", "sed --new s/a/b/ f",
	} {
		f := Parse(script, "")
		if !f.Dynamic && !f.Opaque {
			t.Errorf("%q is known: %v", script, names(f))
		}
	}
}
