package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weirgo/weir"
)

// savedFormat is the version of the lines that WriteRun and WriteJSON write.
const savedFormat = 1

// runLine is the first line of saved results.
type runLine struct {
	Run *savedRun `json:"run"`
}

type savedRun struct {
	Format int `json:"format"`
	Header
}

// WriteRun writes h as the first line of saved results, {"run": {...}}; WriteJSON
// writes the others.
func WriteRun(w io.Writer, h Header) error {
	return encode(w, runLine{&savedRun{savedFormat, h}})
}

// Saved is what WriteRun and WriteJSON wrote.
type Saved struct {
	Name string // of the file
	Header
	Results []Result
}

// ReadSaved reads the lines of a file called name. Something else, another format,
// a line that is cut off, and a case that is there twice are an ErrArgument that
// names the file and the line.
func ReadSaved(r io.Reader, name string) (*Saved, error) {
	s := &Saved{Name: name}
	type key struct{ scenario, name string }
	seen := map[key]int{}
	in := bufio.NewReader(r)
	for number := 1; ; number++ {
		refuse := func(format string, args ...any) error {
			return weir.Argf("bench.ReadSaved", "%s: line %d: "+format, slices.Concat([]any{name, number}, args)...)
		}
		text, err := in.ReadBytes('\n')
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return nil, err
		}
		if last && len(text) == 0 {
			if number == 1 {
				return nil, weir.Argf("bench.ReadSaved", "%s: the file is empty; expected what weir bench --save writes", name)
			}
			return s, nil
		}
		if last && !json.Valid(text) {
			return nil, refuse("it is cut off; remove it to read the others")
		}
		if number == 1 {
			var first runLine
			if err := json.Unmarshal(text, &first); err != nil || first.Run == nil {
				return nil, refuse("no description of a run; expected what weir bench --save writes")
			}
			if first.Run.Format != savedFormat {
				return nil, refuse("format %d; expected %d, which this version of weir reads", first.Run.Format, savedFormat)
			}
			s.Header = first.Run.Header
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, refuse("no result: %v", err)
		}
		if why := l.wrong(); why != "" {
			return nil, refuse("no result: %s", why)
		}
		k := key{l.Scenario, l.Case}
		if before := seen[k]; before > 0 {
			return nil, refuse("%s: %s stands on line %d already", l.Scenario, l.Case, before)
		}
		seen[k] = number
		s.Results = append(s.Results, l.result())
	}
}

// wrong says what is missing in a line that is read.
func (l *line) wrong() string {
	switch {
	case l.Scenario == "":
		return "it names no scenario"
	case l.Skipped != "":
		return ""
	case l.Case == "":
		return "it names no case"
	case l.Error != "":
		return ""
	case unitLengths[Unit(l.Unit)] == 0:
		return fmt.Sprintf("its unit is %q", l.Unit)
	case len(l.Values) == 0 || len(l.Values) != len(l.Floors):
		return "it has not a value and a floor of every round"
	}
	return ""
}
