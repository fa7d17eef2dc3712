package shell

// program describes what a known program does with its arguments.
type program struct {
	// ops is the role of the operands: "" no paths, r read, w written, rw both, pr a
	// pattern and then read, pw a mode and then written, cp, mv, ro, url, port.
	ops string
	// flags that take a value, see options.
	flags string
	net   bool
	// anywhere are options with which it reaches hosts that no argument names.
	anywhere []string
	// deletes: what is written is removed.
	deletes bool
	// inert programs touch nothing, whatever their arguments are.
	inert bool
	// writes is a path the program writes, unless one of the options instead of it names
	// another.
	writes  string
	instead []string
	// trees are options with which the program processes folders with all their content;
	// "" means that it needs no option for that.
	trees []string
	// here: without an operand it then takes the current folder.
	here bool
	// lists are options with which it reads names of files and opens those.
	lists []string
	// saves: -O names a file after its address.
	saves bool
}

// Options with which programs go into folders.
var (
	always = []string{""}
	deep   = []string{"r", "R", "a", "d", "recursive", "dereference-recursive", "archive", "directories"}
)

// programs are those whose arguments we understand. A program that is not here
// and not in the table of special ones is foreign: its arguments that look like
// paths outside are operands, and what is not known makes the script dynamic.
var programs = map[string]program{
	"echo": {inert: true}, "true": {inert: true}, "false": {inert: true}, ":": {inert: true}, "pwd": {inert: true},
	"exit": {inert: true}, "return": {inert: true}, "break": {inert: true}, "continue": {inert: true}, "shift": {inert: true},
	"sleep": {inert: true}, "whoami": {inert: true}, "id": {inert: true}, "uname": {inert: true}, "hostname": {flags: "F=r file=r b=v"},
	"seq": {inert: true}, "expr": {inert: true}, "basename": {inert: true}, "dirname": {inert: true}, "nproc": {inert: true},
	"yes": {inert: true}, "jobs": {inert: true}, "umask": {inert: true}, "type": {inert: true},
	"which": {inert: true}, "tty": {inert: true}, "arch": {inert: true}, "groups": {inert: true}, "times": {inert: true},
	"getconf": {inert: true}, "uptime": {inert: true}, "cal": {inert: true}, "factor": {inert: true}, "ulimit": {inert: true},
	"date": {flags: "d=v date=v f=r file=r r=r reference=r s=v set=v"}, "ps": {flags: "o=v p=v u=v"}, "kill": {flags: "s=v n=v"},
	"printenv": {}, "locale": {}, "free": {}, "tr": {}, "cut": {ops: "r", flags: "d=v f=v c=v b=v delimiter=v fields=v"},
	"ls": {ops: "r", flags: "I=v ignore=v w=v"}, "cat": {ops: "r"}, "tac": {ops: "r"}, "rev": {ops: "r"}, "nl": {ops: "r"},
	"head": {ops: "r", flags: "n=v c=v lines=v bytes=v"}, "tail": {ops: "r", flags: "n=v c=v lines=v bytes=v s=v pid=v"},
	"wc": {ops: "r", flags: "files0-from=n"}, "od": {ops: "r", flags: "A=v j=v N=v t=v"}, "hexdump": {ops: "r", flags: "n=v s=v e=v f=r"},
	"strings": {ops: "r", flags: "n=v t=v e=v"}, "file": {ops: "r", flags: "m=r f=r"}, "stat": {ops: "r", flags: "c=v format=v printf=v"},
	"md5sum": {ops: "r"}, "sha1sum": {ops: "r"}, "sha256sum": {ops: "r"}, "sha512sum": {ops: "r"}, "cksum": {ops: "r"}, "b2sum": {ops: "r"},
	"diff": {ops: "r", trees: deep, flags: "U=v C=v I=v x=v label=v from-file=r to-file=r exclude-from=r X=r"}, "cmp": {ops: "r", flags: "n=v i=v"}, "comm": {ops: "r"}, "join": {ops: "r", flags: "t=v 1=v 2=v o=v"},
	"paste": {ops: "r", flags: "d=v"}, "fold": {ops: "r", flags: "w=v"}, "fmt": {ops: "r", flags: "w=v"}, "column": {ops: "r", flags: "s=v c=v"},
	"base64": {ops: "r", flags: "w=v wrap=v"}, "du": {ops: "r", flags: "d=v max-depth=v exclude=v files0-from=n X=r exclude-from=r"}, "df": {ops: "r"}, "tree": {ops: "r", flags: "L=v I=v P=v o=w"},
	"readlink": {ops: "r"}, "realpath": {ops: "r", flags: "relative-to=v"}, "uniq": {ops: "ro", flags: "f=v s=v w=v"}, "xxd": {ops: "ro", flags: "l=v s=v c=v g=v"},
	"sort":  {ops: "r", flags: "o=w output=w k=v key=v t=v S=v T=w compress-program=x files0-from=n parallel=v"},
	"grep":  {ops: "pr", trees: deep, here: true, flags: "e=v f=r file=r exclude-from=r m=v A=v B=v C=v include=v exclude=v exclude-dir=v d=v"},
	"egrep": {ops: "pr", trees: deep, here: true, flags: "e=v f=r file=r exclude-from=r m=v A=v B=v C=v"}, "fgrep": {ops: "pr", trees: deep, here: true, flags: "e=v f=r file=r exclude-from=r m=v A=v B=v C=v"},
	"ag": {ops: "pr", trees: always, here: true}, "ack": {ops: "pr", trees: always, here: true}, "ugrep": {ops: "pr", trees: always, here: true},
	"rg": {ops: "pr", trees: always, here: true, flags: "pre=s e=v f=r file=r ignore-file=r g=v t=v T=v m=v A=v B=v C=v glob=v type=v hostname-bin=x pre-glob=v"},
	"jq": {ops: "pr", flags: "f=r from-file=r L=r indent=v"},
	"rm": {ops: "w", deletes: true, trees: deep}, "rmdir": {ops: "w", deletes: true}, "unlink": {ops: "w", deletes: true}, "mkdir": {ops: "w", flags: "m=v mode=v"}, "mkfifo": {ops: "w", flags: "m=v"},
	"touch": {ops: "w", flags: "t=v d=v r=r date=v reference=r"}, "truncate": {ops: "w", flags: "s=v size=v r=r"}, "shred": {ops: "w", deletes: true, flags: "n=v s=v"},
	"tee": {ops: "w"}, "chmod": {ops: "pw", flags: "reference=r"}, "chown": {ops: "pw", flags: "reference=r"}, "chgrp": {ops: "pw"},
	"cp": {ops: "cp", trees: deep, flags: "t=w target-directory=w S=v"}, "mv": {ops: "mv", trees: always, flags: "t=w target-directory=w S=v"},
	"ln": {ops: "cp", flags: "t=w S=v"}, "install": {ops: "cp", flags: "m=v o=v g=v t=w strip-program=x"},
	"gzip": {ops: "rw", flags: "S=v"}, "gunzip": {ops: "rw"}, "bzip2": {ops: "rw"}, "xz": {ops: "rw", flags: "T=v files=n? files0=n? S=v F=v M=v"}, "zstd": {ops: "rw", flags: "o=w T=v"}, "zcat": {ops: "r"},
	"patch": {ops: "w", flags: "i=r input=r o=w p=v d=w r=w", writes: "."},
	"unzip": {ops: "r", flags: "d=w x=v", writes: ".", instead: []string{"d"}}, "zip": {ops: "wr", trees: deep, lists: []string{"@"}, flags: "x=v i=v b=w n=v TT=x unzip-command=x"}, "mktemp": {flags: "p=w tmpdir=w", writes: "/tmp"}, "split": {ops: "ro", flags: "b=v l=v n=v filter=x", writes: "."},
	"curl": {ops: "url", net: true, saves: true, flags: "o=w output=w d=d data=d data-binary=d data-urlencode=d F=d form=d T=r upload-file=r K=x config=x H=d header=d X=v request=v u=v user=v A=v e=v b=r cookie=r c=w cookie-jar=w D=w dump-header=w x=u proxy=u socks4=u socks4a=u socks5=u socks5-hostname=u doh-url=u m=v max-time=v connect-timeout=v w=v retry=v E=r cacert=r cert=r key=r output-dir=w trace=w trace-ascii=w stderr=w url=u resolve=v json=d data-raw=v libcurl=w hsts=w alt-svc=w etag-save=w etag-compare=r netrc-file=r variable=d unix-socket=r abstract-unix-socket=v form-string=v preproxy=u connect-to=v interface=v pinnedpubkey=v crlfile=r pubkey=r proxy-cacert=r proxy-cert=r proxy-key=r"},
	"wget": {ops: "url", net: true, anywhere: []string{"i", "input-file"}, writes: ".", instead: []string{"O", "output-document", "P", "directory-prefix"}, flags: "O=w output-document=w P=w directory-prefix=w o=w a=w i=r input-file=r U=v header=v post-data=v post-file=r body-file=r T=v t=v use-askpass=x e=x execute=x"},
	"scp":  {ops: "cp", net: true, trees: deep, flags: "J=u D=x S=x o=x F=x i=r P=v l=v c=v"}, "sftp": {ops: "url", net: true, flags: "J=u D=x S=x b=x o=x F=x i=r P=v"},
	"ping": {ops: "url", net: true, flags: "c=v i=v W=v w=v s=v I=v t=v"}, "dig": {ops: "url", net: true, anywhere: []string{"f"}, flags: "f=r k=r p=v t=v x=v"},
	"nslookup": {ops: "url", net: true}, "host": {ops: "url", net: true, flags: "t=v W=v"}, "traceroute": {ops: "url", net: true}, "whois": {ops: "url", net: true, flags: "h=u p=v"},
	"nc": {ops: "port", net: true, anywhere: []string{"l", "listen", "L"}, flags: "e=x c=x p=v w=v s=v"}, "ncat": {ops: "port", net: true, anywhere: []string{"l", "listen", "L"}, flags: "e=x c=x p=v exec=x sh-exec=x lua-exec=x"}, "netcat": {ops: "port", net: true, anywhere: []string{"l", "listen", "L"}, flags: "e=x c=x p=v w=v"},
	"telnet": {ops: "port", net: true}, "ftp": {ops: "port", net: true},
	"mkfs": {ops: "w", flags: "t=v"}, "mkswap": {ops: "w"}, "wipefs": {ops: "w", flags: "o=v t=v"},
	"iconv": {ops: "r", flags: "o=w output=w f=v t=v from-code=v to-code=v"},
	"gcc":   {ops: "r", lists: []string{"E"}, flags: "o=w I=v L=v D=v wrapper=x B=x include=r imacros=r"}, "rustc": {ops: "r", flags: "o=w"},
}
