package shell

import (
	"strings"
)

func tar(a *analyser, name string, args []word, sc *scope) {
	if len(args) == 0 {
		return
	}
	if args[0].known && args[0].text != "" && args[0].text[0] != '-' {
		args = append([]word{{text: "-" + args[0].text, known: true}}, args[1:]...)
	}
	mode, file, dir := byte(0), word{}, word{text: ".", known: true}
	var members []word
	for i := 0; i < len(args); i++ {
		w := args[i]
		next := func() word {
			if i++; i < len(args) {
				return args[i]
			}
			return word{}
		}
		switch t := w.text; {
		case !w.known || !strings.HasPrefix(t, "-") || t == "-":
			members = append(members, w)
		case strings.HasPrefix(t, "--"):
			key, value, has := strings.Cut(t, "=")
			val := word{text: value, known: true}
			switch key {
			case "--file", "--directory":
				if !has {
					val = next()
				}
				if key == "--file" {
					file = val
				} else {
					dir = val
				}
			case "--extract", "--get":
				mode = 'x'
			case "--create":
				mode = 'c'
			case "--list":
				mode = 't'
			case "--append", "--update", "--delete":
				mode = 'r'
			case "--verbose", "--gzip", "--bzip2", "--xz", "--zstd", "--strip-components", "--exclude", "--wildcards", "--no-same-owner", "--numeric-owner", "--auto-compress", "--version", "--help":
			default:
				a.unresolved(sc.wrapped(name), "the option "+key+" of tar")
				return
			}
		default:
			for j := 1; j < len(t); j++ {
				switch t[j] {
				case 'x', 'c', 't', 'r', 'u':
					mode = t[j]
				case 'f', 'C':
					val := word{text: t[j+1:], known: true}
					if val.text == "" || i == 0 && t[j] == 'f' && j < len(t)-1 && !strings.HasPrefix(args[0].text, "--") && strings.Trim(val.text, "xctruvzjJahpkmw") == "" {
						val = next()
						if t[j] == 'f' {
							file = val
						} else {
							dir = val
						}
						continue
					}
					if t[j] == 'f' {
						file = val
					} else {
						dir = val
					}
					j = len(t)
				case 'P':
					a.dynamic("tar keeps absolute names")
				case 'I', 'F':
					a.unresolved(sc.wrapped(name), "an option of tar that names a program")
					return
				case 'T', 'X', 'g', 'b', 'H', 'K', 'L', 'N', 'V':
					a.dynamic("an option of tar that is not understood")
					next()
					j = len(t)
				}
			}
		}
	}
	if strings.Contains(file.text, ":") {
		a.network(false)
		a.remote(file.text)
	}
	a.tarPaths(mode, file, dir, members, sc)
}

func (a *analyser) tarPaths(mode byte, file, dir word, members []word, sc *scope) {
	a.disturbed = true
	switch mode {
	case 'x':
		if file.known {
			a.read(file.text, sc)
		} else if file.split {
			a.unknownPath(false)
		}
		a.touchWord(dir, "w", sc)
	case 't':
		if file.known {
			a.read(file.text, sc)
		} else if file.split {
			a.unknownPath(false)
		}
	case 'c', 'r', 'u':
		if file.known {
			a.write(file.text, sc)
		} else if file.split {
			a.unknownPath(true)
		}
		from := sc.copy()
		if dir.text != "." || !dir.known {
			a.enters(dir, from)
		}
		a.operands("r", members, from)
		a.tree(members, from)
	default:
		a.dynamic("tar without a mode")
	}
}
