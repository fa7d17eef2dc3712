package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWhatArchivesReadAndWrite: the files that an archive is made of, and that are made of
// it, follow from its options, however they are written.
func TestWhatArchivesReadAndWrite(t *testing.T) {
	tests := map[string]struct{ reason, reads, writes, starts string }{
		"tar xzf a.tgz -C out":                       {"letters without a dash", "a.tgz", "out", "gzip"},
		"tar cfz a.tgz src":                          {"the value follows all letters", "src", "a.tgz", "gzip"},
		"tar -cfz src":                               {"with a dash, the value is attached", "src", "z", ""},
		"tar --create --file a.tar --gz src":         {"long options, cut short", "src", "a.tar", "gzip"},
		"tar -C d -cf a.tar x":                       {"the archive is not in the folder", "d/x", "a.tar", ""},
		"tar --delete -f a.tar x":                    {"the archive is changed", "", "a.tar", ""},
		"tar -tf a.tar":                              {"a list", "a.tar", "", "gzip"},
		"tar -xOf a.tar x":                           {"to the output", "a.tar", "", "gzip"},
		"tar cf a.tar --remove-files x":              {"what is packed vanishes", "", "a.tar x", ""},
		"gzip a":                                     {"a file is replaced", "a", "a.gz a", ""},
		"gzip -k9 a":                                 {"it stays", "a", "a.gz", ""},
		"gzip -cd a.gz":                              {"to the output", "a.gz", "", ""},
		"gunzip a.tgz":                               {"a suffix is exchanged", "a.tgz", "a.tar a.tgz", "gzip"},
		"bunzip2 a":                                  {"a file without a suffix", "a", "a.out a", ""},
		"unxz --keep a.xz":                           {"it stays", "a.xz", "a", ""},
		"zstd a":                                     {"it stays without an option", "a", "a.zst", ""},
		"zip -r a src -x '*.o' '*.a'":                {"the archive gets a suffix", "src", "a a.zip", ""},
		"zip -m a.zip x":                             {"what is packed vanishes", "", "a.zip x", ""},
		"unzip -qd out a.zip":                        {"into a folder", "a.zip", "out", ""},
		"unzip -l a.zip":                             {"a list", "a.zip", "", ""},
		"7z x a.7z -oout":                            {"an attached folder", "a.7z", "out", ""},
		"ar rcs a.a x.o":                             {"letters without a dash", "x.o", "a.a", ""},
		"rsync -a src/ dst":                          {"a folder", "src/", "dst", ""},
		"rsync -a src/ host:dst":                     {"another host", "src/", "", "ssh"},
		"rsync --remove-source-files x dst":          {"the sources vanish", "x", "dst x", ""},
		"jq --rawfile x a . c":                       {"an option with two values", "a c", "", ""},
		"xxd -len 16 a b":                            {"a word behind one dash", "a", "b", ""},
		"patch -p1 -d sub":                           {"a folder", "", "sub", "ed"},
		"grep -f a -e b c":                           {"patterns by options", "a c", "", ""},
		"diff -u5 --from-file=a b":                   {"a number behind an option", "a b", "", ""},
		"env -S '-C sub rm' x":                       {"options in a text", "", "sub/x", ""},
		"watch -n 1 'rm x'":                          {"a shell runs it", "", "x", "sh"},
		"runuser -u user -- rm x":                    {"a program", "", "x", ""},
		"setarch x86_64 -R rm x":                     {"options behind a machine", "", "x", ""},
		"sudo A=1 rm x":                              {"a variable", "", "x", ""},
		"taskset -c 0 chrt -f 1 ionice -c3 rm x":     {"wrappers in wrappers", "", "x", ""},
		"tar -cf a.tar -I 'zstd -T0' x":              {"a program with arguments", "x", "a.tar", ""},
		"tar --show-defaults; unzip -hh; xz --robot": {"nothing", "", "", ""},
	}
	for script, tc := range tests {
		f := Parse(script, "")
		if f.Dynamic || f.Opaque {
			t.Errorf("%q: %s: dynamic %v, opaque %t", script, tc.reason, f.Reasons, f.Opaque)
		}
		if diff := cmp.Diff(sorted(strings.Fields(tc.reads)), sorted(f.Reads)); diff != "" {
			t.Errorf("%q: %s: reads (-want +got):\n%s", script, tc.reason, diff)
		}
		if diff := cmp.Diff(sorted(strings.Fields(tc.writes)), sorted(f.Writes)); diff != "" {
			t.Errorf("%q: %s: writes (-want +got):\n%s", script, tc.reason, diff)
		}
		if tc.starts != "" && !slices.Contains(f.Starts, tc.starts) {
			t.Errorf("%q: %s: starts %v, not %s", script, tc.reason, f.Starts, tc.starts)
		}
	}
}

// TestWhatIsNotInTheTableIsNotExact: options that name programs, that let an archive
// decide where it is unpacked, and letters that only look like options.
func TestWhatIsNotInTheTableIsNotExact(t *testing.T) {
	for _, script := range []string{
		"tar xPf a.tar", "tar -xf a.tar --transform=s,^,/,", "tar xf a.tar x -C d y", "tar cf a.tar -T list", "tar cf a.tar -C $d x", "tar -c --new-option x", "tar cf a.tar --checkpoint-action=exec=x y",
		"gzip -S .z a", "gzip -dN a.gz", "xz --files", "zip -rTTx a.zip src", "zip -tt 2020-01-01 -TT x a.zip y", "zip a.zip -@", "zip $x a.zip y", "7z a a.7z @list", "ar @options", "ar rb x.o a.a y.o",
		"cpio -i <a", "find . | cpio -o", "rsync --files-from=list . dst", "rsync -e ./x a b", "rsync -b a b", "less +!x f", "rg --pre ./x y", "jq -f a b", "fd x -x rm", "rename s/a/b/ x", "dc f",
		"env -S \"$x\" ls", "env -u PATH ls", "sudo -s", "sudo -e f", "su", "script f", "unshare -r", "nsenter -t 1 ls", "systemd-run ls", "flock f* ls", "strace -o '|x' ls", "TAR_OPTIONS=-P tar cf a.tar x", "RSYNC_RSH=x rsync a h:b",
	} {
		if f := Parse(script, ""); !f.Dynamic && !f.Opaque {
			t.Errorf("%q is exact: %v, reads %v, writes %v", script, names(f), f.Reads, f.Writes)
		}
	}
}
