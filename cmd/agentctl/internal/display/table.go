package display

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// table lays out rows in columns that are two cells apart, measured as a
// terminal shows them. The last column is not padded.
func table(rows [][]string) string {
	var widths []int
	return grid(rows, &widths)
}

// grid is a table whose columns are at least as wide as before, and says how
// wide they have become.
func grid(rows [][]string, known *[]int) string {
	widths := *known
	defer func() { *known = widths }()
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i == len(row)-1 {
				line.WriteString(cell)
				break
			}
			line.WriteString(pad(cell, widths[i]+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
