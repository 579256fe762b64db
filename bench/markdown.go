package bench

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes a run's description and tables as a document.
func WriteMarkdown(w io.Writer, h Header, results []Result) error {
	var text strings.Builder // whose writes do not fail
	fmt.Fprintf(&text, "# weir bench on %s\n\n", cell(h.Device))
	for _, f := range h.fields() {
		fmt.Fprintf(&text, "- %s: %s\n", f[0], cell(f[1]))
	}
	fmt.Fprint(&text, "\nValue and floor are the medians of alternating rounds, in time per operation; the ratio is value over floor, and the quartiles are"+
		" those of the rounds' ratios. A row with + is a peer's: the same work by another library, in rounds of its own, over the same floor.\n")
	t := Table{w: &text, layout: markdown}
	for _, r := range results {
		if err := t.Add(r); err != nil {
			return err
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func markdown(w io.Writer, scenario string, heading []string, rows [][]string, notes []string) {
	fmt.Fprintf(w, "\n## %s\n", cell(scenario))
	if len(rows) > 0 {
		fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(heading, " | "), strings.Repeat("---|", len(heading)))
		for _, row := range rows {
			fmt.Fprint(w, "|")
			for i := range heading {
				text := ""
				if i < len(row) {
					text = cell(row[i])
				}
				fmt.Fprintf(w, " %s |", text)
			}
			fmt.Fprintln(w)
		}
	}
	for _, note := range notes {
		fmt.Fprintf(w, "\n%s\n", cell(note))
	}
}

// cell is text in which Markdown finds no markup of its own, on one line.
func cell(text string) string {
	return escapes.Replace(strings.Join(strings.Fields(text), " "))
}

var escapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`)
