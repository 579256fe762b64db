package cudaenv

import (
	"strings"

	"github.com/weirgo/weir"
)

// The go command splits CC and its flags at white space, except between single
// or double quotes that stand around a whole word; nothing is escaped.

const space = " \t\n\r"

// join quotes words for the go command. A word with both kinds of quotes that
// would need some has no such form.
func join(words []string) (string, error) {
	quoted := make([]string, len(words))
	for i, w := range words {
		switch {
		case w != "" && !strings.ContainsAny(w, space+`'"`):
			quoted[i] = w
		case !strings.Contains(w, "'"):
			quoted[i] = "'" + w + "'"
		case !strings.Contains(w, `"`):
			quoted[i] = `"` + w + `"`
		default:
			return "", weir.Argf("cudaenv.Find", "path: got %s; expected one without both kinds of quotes, for the go command takes none", w)
		}
	}
	return strings.Join(quoted, " "), nil
}

// split undoes join.
func split(text string) ([]string, error) {
	var words []string
	for {
		text = strings.TrimLeft(text, space)
		if text == "" {
			return words, nil
		}
		end, skip := strings.IndexAny(text, space), 0
		if q := text[0]; q == '\'' || q == '"' {
			text = text[1:]
			end, skip = strings.IndexByte(text, q), 1
			if end < 0 {
				return nil, weir.Argf("cudaenv.Find", "CC: got %c%s; expected a closing quote", q, text)
			}
		} else if end < 0 {
			end = len(text)
		}
		words = append(words, text[:end])
		text = text[end+skip:]
	}
}
