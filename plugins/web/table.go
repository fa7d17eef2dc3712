package web

import (
	"bytes"
	"slices"
)

type table struct {
	rows, cells int
	begin       int
	// layout: its cells are blocks, as there are tables in them, or one in a row.
	layout bool
	inRow  bool
}

func (w *writer) table() {
	if n := len(w.tables); n > 0 && !w.tables[n-1].layout {
		w.tables[n-1].layout = true // what is in its cells is more than a line
		w.dropMargin()
	}
	w.block()
	if len(w.tables) < maxDepth {
		w.tables = append(w.tables, table{})
	}
}

// dropMargin takes away the sign before the first cell of a row.
func (w *writer) dropMargin() {
	t := &w.tables[len(w.tables)-1]
	if !t.inRow || t.cells == 0 || t.begin+2 > len(w.out) || string(w.out[t.begin:t.begin+2]) != "| " {
		return
	}
	if w.out = slices.Delete(w.out, t.begin, t.begin+2); len(w.out) == t.begin {
		w.out = bytes.TrimRight(w.out, "\n ")
	}
}

func (w *writer) endTable() {
	if n := len(w.tables); n > 0 {
		w.tables = w.tables[:n-1]
	}
	w.block()
}

func (w *writer) row() {
	n := len(w.tables)
	if n == 0 {
		return
	}
	w.line()
	w.tables[n-1].cells, w.tables[n-1].inRow = 0, true
}

func (w *writer) cell() {
	n := len(w.tables)
	if n == 0 {
		return
	}
	t := &w.tables[n-1]
	if t.layout || !t.inRow {
		w.block()
		return
	}
	if t.cells++; t.cells == 1 {
		w.flush()
		t.begin = len(w.out)
		w.out = append(w.out, "| "...)
		return
	}
	w.space = false
	w.out = append(bytes.TrimRight(w.out, " "), " | "...)
}

func (w *writer) endRow() {
	n := len(w.tables)
	if n == 0 || !w.tables[n-1].inRow {
		return
	}
	t := &w.tables[n-1]
	cells := t.cells
	switch {
	case t.layout || cells == 0:
	case cells == 1 && t.rows == 0: // one cell in the first row: this is no table of data
		w.dropMargin()
		t.layout = true
	default:
		w.space = false
		w.out = append(bytes.TrimRight(w.out, " "), " |"...)
		if t.rows++; t.rows == 1 && !w.plain {
			w.newline()
			w.out = append(w.out, '|')
			w.out = append(w.out, bytes.Repeat([]byte(" --- |"), cells)...)
		}
	}
	t.inRow = false
	w.line()
}
