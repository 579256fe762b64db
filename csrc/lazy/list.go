package lazy

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/weirgo/weir"
)

// Library is one shared library and the functions of it that programs call.
type Library struct {
	Name        string   // "cuda": the archive is libcuda.a
	Sonames     []string // the best first
	Missing     int      // what a missing function answers
	MissingName string   // its symbolic name
	Extra       []string // further files of c/
	Functions   []Function
}

// Function is one trampoline. By and Else are C functions, or "".
type Function struct {
	Name string
	By   string // takes the calls in any case
	Else string // takes them where the library has no such function
}

//go:embed symbols/*.txt
var lists embed.FS

//go:embed c
var sources embed.FS

// Libraries answers the committed lists, by name.
func Libraries() []Library {
	files, err := fs.Glob(lists, "symbols/*.txt")
	if err != nil {
		panic(err)
	}
	var all []Library
	for _, file := range files {
		text, err := lists.ReadFile(file)
		if err != nil {
			panic(err)
		}
		library, err := Parse(strings.TrimSuffix(path.Base(file), ".txt"), string(text))
		if err != nil {
			panic(err) // a test reads them all
		}
		all = append(all, library)
	}
	return all
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Parse reads a list; doc.go has its format. The error names the line.
func Parse(name, text string) (Library, error) {
	l := Library{Name: name}
	if !identifier.MatchString(name) {
		return l, weir.Argf("lazy.Parse", "name: got %q; expected a C identifier", name)
	}
	seen := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := l.take(words, seen); err != nil {
			return l, weir.Argf("lazy.Parse", "%s.txt, line %d: %v", name, i+1, err)
		}
	}
	if len(l.Sonames) == 0 || len(l.Functions) == 0 || l.MissingName == "" {
		return l, weir.Argf("lazy.Parse", "%s.txt: expected a soname, a missing line and a function", name)
	}
	return l, nil
}

func (l *Library) take(words []string, seen map[string]bool) error {
	switch {
	case words[0] == "soname" && len(words) == 2:
		l.Sonames = append(l.Sonames, words[1])
		return nil
	case words[0] == "source" && len(words) == 2:
		l.Extra = append(l.Extra, words[1])
		return nil
	case words[0] == "missing" && len(words) == 3:
		code, err := strconv.ParseInt(words[1], 10, 32)
		l.Missing, l.MissingName = int(code), words[2]
		return err
	}

	f := Function{Name: words[0]}
	switch {
	case len(words) == 1:
	case len(words) == 3 && words[1] == "by":
		f.By = words[2]
	case len(words) == 3 && words[1] == "else":
		f.Else = words[2]
	default:
		return fmt.Errorf("got %q; expected a function, alone or with 'by' or 'else' and another", strings.Join(words, " "))
	}
	for _, c := range []string{f.Name, f.By + f.Else} {
		if c != "" && !identifier.MatchString(c) {
			return fmt.Errorf("got %q; expected a C identifier", c)
		}
	}
	if seen[f.Name] {
		return fmt.Errorf("got %s again; expected each function once", f.Name)
	}
	seen[f.Name] = true
	l.Functions = append(l.Functions, f)
	return nil
}
