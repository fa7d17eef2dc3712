package web

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// converted is what is read of an HTML page.
type converted struct {
	text, title string
	// hidden is how many parts with text were left out because the page hides them.
	hidden int
	cut    string
}

const (
	// maxDepth bounds how deep elements are followed: those below count as text of the
	// last one.
	maxDepth = 200
	// maxToken bounds a tag with its attributes, and a text.
	maxToken = 4 << 20
	// maxTitle bounds a title, in bytes.
	maxTitle = 300
)

// convert writes an HTML page as Markdown, or as plain text. It reads the page once, token
// by token, and builds no tree: the work grows with the page and with nothing else,
// whatever its tags are.
func convert(page string, at *url.URL, plain bool) converted {
	c := &converter{base: at, w: writer{plain: plain}, off: -1}
	c.w.out = make([]byte, 0, len(page)/2)
	z := html.NewTokenizer(strings.NewReader(page))
	z.SetMaxBuf(maxToken)
	var cut string
	for {
		switch z.Next() {
		case html.ErrorToken:
			if errors.Is(z.Err(), html.ErrBufferExceeded) {
				cut = fmt.Sprintf("a tag or a text has more than %d bytes, what follows was not read", maxToken)
			}
			c.popTo(0)
			return converted{text: c.main(), title: c.title, hidden: c.hidden, cut: cut}
		case html.TextToken:
			c.words(z.Text())
		case html.StartTagToken:
			c.start(z, false)
		case html.SelfClosingTagToken: // the slash means nothing but in SVG
			c.start(z, c.off >= 0 && c.open[c.off].tag == atom.Svg)
		case html.EndTagToken:
			name, _ := z.TagName()
			c.end(atom.Lookup(name), name)
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// element is one that is open.
type element struct {
	tag  atom.Atom
	name string // of one without an atom
	main bool   // the main part of the page
}

type converter struct {
	base *url.URL
	w    writer

	open []element
	// counts are how many elements of a kind are open: most often there is none to close.
	counts [kinds]int
	// off is the element whose content is left out, -1 if there is none; conceal is set
	// when the page hides it, and silent as long as it had no text.
	off             int
	conceal, silent bool
	hidden          int

	title   string
	inTitle bool
	// mains and articles are where such elements begin and end in the output.
	mains, articles regions
}

// regions are the outermost elements of a kind.
type regions struct {
	depth, begin int
	spans        [][2]int
}

func (r *regions) enter(at int) {
	if r.depth == 0 {
		r.begin = at
	}
	r.depth++
}

func (r *regions) leave(at int) {
	if r.depth--; r.depth == 0 && len(r.spans) < 1000 {
		r.spans = append(r.spans, [2]int{r.begin, at})
	}
}

// leastMain is how much text the main part of a page has, in bytes, to count as such.
const leastMain = 200

// main is the content of the page: its main element, or its only article, or all but what
// surrounds a content.
func (c *converter) main() string {
	for _, r := range []regions{c.mains, c.articles} {
		if len(r.spans) != 1 {
			continue
		}
		end := min(r.spans[0][1], len(c.w.out))
		if part := strings.TrimSpace(string(c.w.out[min(r.spans[0][0], end):end])); len(part) >= leastMain {
			return part + "\n"
		}
	}
	if text := strings.TrimSpace(string(c.w.out)); text != "" {
		return text + "\n"
	}
	return ""
}

// start handles a tag that opens an element, or is one by itself.
func (c *converter) start(z *html.Tokenizer, alone bool) {
	raw, more := z.TagName()
	tag := atom.Lookup(raw)
	c.imply(tag)
	if c.off >= 0 {
		if !alone && !void(tag) {
			c.push(element{tag: tag}, raw)
		}
		return
	}
	var a attributes
	if more {
		a = read(z, more)
	}
	if void(tag) {
		c.single(tag, a)
		return
	}
	off := a.hidden || dropped(tag) || c.surrounds(tag, a.role)
	pushed := c.push(element{tag: tag, main: !off && (tag == atom.Main || a.role == "main")}, raw)
	switch {
	case off: // with an element that is too deep, the rest of the one around it
		c.off, c.conceal, c.silent = len(c.open)-1, a.hidden && !dropped(tag), true
	case pushed:
		if c.open[len(c.open)-1].main {
			c.w.block()
			c.mains.enter(len(c.w.out))
		}
		c.begin(tag, a)
	}
}

// single writes an element without content.
func (c *converter) single(tag atom.Atom, a attributes) {
	switch tag {
	case atom.Br:
		c.w.lineBreak()
	case atom.Hr:
		c.w.rule()
	case atom.Img:
		if !a.hidden {
			c.w.image(a.alt, c.resolve(a.src))
		}
	case atom.Base:
		if u, err := url.Parse(c.resolve(a.href)); err == nil && u.Host != "" {
			c.base = u
		}
	default:
	}
}

// push opens an element. It reports whether the element is followed.
func (c *converter) push(e element, raw []byte) bool {
	if len(c.open) >= maxDepth {
		return false
	}
	if e.tag == 0 {
		e.name = string(raw[:min(len(raw), 64)])
	}
	c.open = append(c.open, e)
	c.counts[kindOfElement(e.tag)]++
	return true
}

// end closes an element and those in it.
func (c *converter) end(tag atom.Atom, raw []byte) {
	if tag == atom.P && !c.has(atom.P) {
		if c.off < 0 {
			c.w.block()
		}
		return
	}
	for i, e := range slices.Backward(c.open) {
		if e.tag == tag && (tag != 0 || e.name == string(raw[:min(len(raw), 64)])) {
			c.popTo(i)
			return
		}
		if scope(e.tag) && !(tabular(tag) && e.tag != atom.Table) {
			return
		}
	}
}

func (c *converter) has(tag atom.Atom) bool {
	for i := len(c.open) - 1; i >= 0 && !scope(c.open[i].tag); i-- {
		if c.open[i].tag == tag {
			return true
		}
	}
	return false
}

// imply closes what HTML closes by itself before a tag.
func (c *converter) imply(tag atom.Atom) {
	closes, within := implied(tag)
	if !slices.ContainsFunc(closes, func(t atom.Atom) bool { return c.counts[kindOfElement(t)] > 0 }) {
		return
	}
	for i, e := range slices.Backward(c.open) {
		switch {
		case slices.Contains(closes, e.tag):
			c.popTo(i)
			return
		case slices.Contains(within, e.tag):
			return
		}
	}
}

// popTo closes all elements from one on.
func (c *converter) popTo(i int) {
	for n := len(c.open) - 1; n >= i; n-- {
		tag, main := c.open[n].tag, c.open[n].main
		c.open = c.open[:n]
		c.counts[kindOfElement(tag)]--
		if main {
			c.w.block()
			c.mains.leave(len(c.w.out))
		}
		switch {
		case c.off == n:
			c.off = -1
		case c.off < 0:
			c.finish(tag)
		}
		if tag == atom.Title {
			c.inTitle = false
		}
	}
}

// words handles a text.
func (c *converter) words(text []byte) {
	if c.inTitle {
		if c.title == "" {
			c.title = visible(string(text[:min(len(text), 4*maxTitle)]))
			c.title = strings.ToValidUTF8(c.title[:min(len(c.title), maxTitle)], "")
		}
		return
	}
	if c.off < 0 {
		c.w.text(text)
		return
	}
	if c.conceal && c.silent && len(strings.TrimSpace(string(text[:min(len(text), 1000)]))) > 0 {
		c.silent = false
		c.hidden++
	}
}

// surrounds reports whether an element is around the content of a page and not of it.
func (c *converter) surrounds(tag atom.Atom, role string) bool {
	switch role {
	case "navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "complementary":
		return role == "navigation" || c.mains.depth+c.articles.depth == 0
	}
	switch tag {
	case atom.Nav:
		return true
	case atom.Footer, atom.Aside:
		return c.mains.depth+c.articles.depth == 0
	default:
	}
	return false
}

// resolve makes a link absolute; "" is one that leads nowhere a reader could go.
func (c *converter) resolve(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || len(href) > maxURL || strings.HasPrefix(href, "#") {
		return ""
	}
	u, err := c.base.Parse(href)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
		return ""
	}
	u.User = nil
	return u.String()
}

// begin and finish write what an element is in Markdown.
func (c *converter) begin(tag atom.Atom, a attributes) {
	w := &c.w
	switch tag {
	case atom.Title:
		c.inTitle = true
	case atom.Article:
		w.block()
		c.articles.enter(len(w.out))
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.heading(level(tag))
	case atom.P, atom.Div, atom.Section, atom.Header, atom.Footer, atom.Aside, atom.Figure, atom.Figcaption, atom.Details, atom.Summary, atom.Dl, atom.Form, atom.Fieldset,
		atom.Address, atom.Center, atom.Body, atom.Caption, atom.Hgroup:
		w.block()
	case atom.Dt:
		w.block()
	case atom.Dd:
		w.line()
	case atom.Blockquote:
		w.quote()
	case atom.Ul, atom.Menu:
		w.list(0, false)
	case atom.Ol:
		w.list(number(a.start), true)
	case atom.Li:
		w.item()
	case atom.Pre, atom.Listing:
		w.fence(language(a.class))
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		if w.pre == 0 {
			w.mark("`")
			w.codes++
		} else if w.lang == "" {
			w.lang = language(a.class)
		}
	case atom.B, atom.Strong:
		w.mark("**")
	case atom.I, atom.Em, atom.Cite:
		w.mark("*")
	case atom.Del, atom.S, atom.Strike:
		w.mark("~~")
	case atom.A:
		w.link(c.resolve(a.href))
	case atom.Table:
		w.table()
	case atom.Tr:
		w.row()
	case atom.Td, atom.Th:
		w.cell()
	default:
	}
}

func (c *converter) finish(tag atom.Atom) {
	w := &c.w
	switch tag {
	case atom.Article:
		w.block()
		c.articles.leave(len(w.out))
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.endHeading()
	case atom.P, atom.Div, atom.Section, atom.Header, atom.Footer, atom.Aside, atom.Figure, atom.Figcaption, atom.Details, atom.Summary,
		atom.Dl, atom.Form, atom.Fieldset, atom.Address, atom.Center, atom.Body, atom.Caption, atom.Hgroup:
		w.block()
	case atom.Blockquote:
		w.endQuote()
	case atom.Ul, atom.Ol, atom.Menu:
		w.endList()
	case atom.Li:
		w.endItem()
	case atom.Pre, atom.Listing:
		w.endFence()
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		if w.pre == 0 {
			w.codes = max(w.codes-1, 0)
			w.endMark("`")
		}
	case atom.B, atom.Strong:
		w.endMark("**")
	case atom.I, atom.Em, atom.Cite:
		w.endMark("*")
	case atom.Del, atom.S, atom.Strike:
		w.endMark("~~")
	case atom.A:
		w.endLink()
	case atom.Table:
		w.endTable()
	case atom.Tr:
		w.endRow()
	default:
	}
}
