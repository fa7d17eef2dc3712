package shell

import "strings"

// sedProgram reads a program of sed: what it opens besides its operands.
type sedProgram struct {
	text          string
	at            int
	reads, writes []string
	// runs: it may start a program. bad: the program is not understood.
	runs, bad bool
}

func parseSed(text string) *sedProgram {
	p := &sedProgram{text: text}
	for !p.bad && !p.runs {
		p.skip(" \t\n;")
		if p.end() {
			break
		}
		p.addresses()
		p.command()
	}
	return p
}

func (p *sedProgram) end() bool { return p.at >= len(p.text) }

func (p *sedProgram) skip(chars string) {
	for !p.end() && strings.IndexByte(chars, p.text[p.at]) >= 0 {
		p.at++
	}
}

// next is the next character; 0 at the end.
func (p *sedProgram) next() byte {
	if p.end() {
		return 0
	}
	return p.text[p.at]
}

func (p *sedProgram) addresses() {
	for range 2 {
		p.skip(" \t")
		switch c := p.next(); {
		case c == '/':
			p.at++
			p.until('/', true)
			p.skip("IM")
		case c == '\\':
			p.at++
			if p.end() {
				p.bad = true
				return
			}
			p.at++
			p.until(p.text[p.at-1], true)
			p.skip("IM")
		case c >= '0' && c <= '9' || c == '$' || c == '+' || c == '~':
			p.at++
			p.skip("0123456789~")
		}
		p.skip(" \t")
		if p.next() != ',' {
			break
		}
		p.at++
	}
	p.skip(" \t!")
}

// until moves behind the next delimiter.
func (p *sedProgram) until(delimiter byte, pattern bool) {
	for ; !p.end(); p.at++ {
		switch c := p.text[p.at]; {
		case c == '\\':
			p.at++
		case c == '\n' && pattern:
			p.bad = true
			return
		case c == delimiter:
			p.at++
			return
		case c == '[' && pattern:
			if p.brackets(delimiter); p.bad {
				return
			}
		}
	}
	p.bad = true
}

// brackets moves to the end of a bracket expression. A delimiter in it is another matter to
// each sed.
func (p *sedProgram) brackets(delimiter byte) {
	p.at++
	if p.next() == '^' {
		p.at++
	}
	for first := true; !p.end(); first = false {
		c, follows := p.text[p.at], byte(0)
		if p.at+1 < len(p.text) {
			follows = p.text[p.at+1]
		}
		switch {
		case c == ']' && !first:
			return
		case c == delimiter, c == '\n', c == '\\' && follows == ']':
			p.bad = true
			return
		case c == '\\' && follows == delimiter:
			p.at++
		case c == '[' && follows != 0 && strings.IndexByte(":.=", follows) >= 0:
			end := strings.Index(p.text[p.at+2:], string(follows)+"]")
			if end < 0 || strings.IndexByte(p.text[p.at:p.at+2+end], delimiter) >= 0 {
				p.bad = true
				return
			}
			p.at += 2 + end + 1
		}
		p.at++
	}
	p.bad = true
}

// line is the rest of the line.
func (p *sedProgram) line() string {
	p.skip(" \t")
	rest, _, _ := strings.Cut(p.text[p.at:], "\n")
	p.at += len(rest)
	return rest
}

func (p *sedProgram) command() {
	c := p.next()
	p.at++
	switch c {
	case '{', '}':
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		p.close()
	case 'l', 'L', 'q', 'Q':
		p.skip(" \t")
		p.skip("0123456789")
		p.close()
	case 'b', 't', 'T', ':':
		p.skip(" \t")
		for p.next() != 0 && strings.IndexByte(" \t\n;}", p.next()) < 0 {
			p.at++
		}
		p.close()
	case '#':
		p.line()
	case 'a', 'i', 'c':
		p.added()
	case 'r', 'R':
		p.reads = append(p.reads, p.line())
	case 'w', 'W':
		p.writes = append(p.writes, p.line())
	case 's':
		p.substitute()
	case 'y':
		d := p.next()
		p.at++
		p.until(d, false)
		p.until(d, false)
		p.close()
	case 'e':
		p.runs = true
	default:
		p.bad = true
	}
}

// close expects the end of a command.
func (p *sedProgram) close() {
	p.skip(" \t")
	if c := p.next(); c != 0 && c != ';' && c != '\n' && c != '}' && c != '#' {
		p.bad = true
	}
}

// added skips a text, whose lines end in a backslash as long as it continues.
func (p *sedProgram) added() {
	for ; !p.end() && p.text[p.at] != '\n'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
}

func (p *sedProgram) substitute() {
	d := p.next()
	if d == 0 || d == '\n' || d == '\\' || d == '[' || d == ']' {
		p.bad = true
		return
	}
	p.at++
	p.until(d, true)
	p.until(d, false)
	for !p.bad {
		c := p.next()
		switch {
		case c == 'e':
			p.runs = true
			return
		case c == 'w':
			p.at++
			p.writes = append(p.writes, p.line())
			return
		case c != 0 && strings.IndexByte("gpiImM0123456789", c) >= 0:
			p.at++
		default:
			p.close()
			return
		}
	}
}
