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

// simplePrograms are those whose arguments we understand. A program that is not here
// and not in the table of special ones is foreign: its arguments that look like
// paths outside are operands, and what is not known makes the script dynamic.
var simplePrograms = map[string]program{
	"rev":     {ops: "r"},
	"hexdump": {ops: "r", flags: "n=v s=v e=v f=r"},
	"file":    {ops: "r", flags: "m=r f=r"},
	"diff":    {ops: "r", trees: deep, flags: "U=v C=v I=v x=v label=v from-file=r to-file=r exclude-from=r X=r"}, "cmp": {ops: "r", flags: "n=v i=v"},
	"tree":  {ops: "r", flags: "L=v I=v P=v o=w"},
	"xxd":   {ops: "ro", flags: "l=v s=v c=v g=v"},
	"grep":  {ops: "pr", trees: deep, here: true, flags: "e=v f=r file=r exclude-from=r m=v A=v B=v C=v include=v exclude=v exclude-dir=v d=v"},
	"egrep": {ops: "pr", trees: deep, here: true, flags: "e=v f=r file=r exclude-from=r m=v A=v B=v C=v"}, "fgrep": {ops: "pr", trees: deep, here: true, flags: "e=v f=r file=r exclude-from=r m=v A=v B=v C=v"},
	"ag": {ops: "pr", trees: always, here: true}, "ack": {ops: "pr", trees: always, here: true}, "ugrep": {ops: "pr", trees: always, here: true},
	"rg":   {ops: "pr", trees: always, here: true, flags: "pre=s e=v f=r file=r ignore-file=r g=v t=v T=v m=v A=v B=v C=v glob=v type=v hostname-bin=x pre-glob=v"},
	"jq":   {ops: "pr", flags: "f=r from-file=r L=r indent=v"},
	"gzip": {ops: "rw", flags: "S=v"}, "gunzip": {ops: "rw"}, "bzip2": {ops: "rw"}, "xz": {ops: "rw", flags: "T=v files=n? files0=n? S=v F=v M=v"}, "zstd": {ops: "rw", flags: "o=w T=v"}, "zcat": {ops: "r"},
	"patch": {ops: "w", flags: "i=r input=r o=w p=v d=w r=w", writes: "."},
	"unzip": {ops: "r", flags: "d=w x=v", writes: ".", instead: []string{"d"}}, "zip": {ops: "wr", trees: deep, lists: []string{"@"}, flags: "x=v i=v b=w n=v TT=x unzip-command=x"},
	"iconv": {ops: "r", flags: "o=w output=w f=v t=v from-code=v to-code=v"},
	"gcc":   {ops: "r", lists: []string{"E"}, flags: "o=w I=v L=v D=v wrapper=x B=x include=r imacros=r"}, "rustc": {ops: "r", flags: "o=w"},
}
