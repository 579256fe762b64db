package npyfile

import (
	"fmt"
	"strconv"
	"strings"
)

// dict is the content of a header: a Python dictionary with exactly these keys.
type dict struct {
	descr   string
	fortran bool
	shape   []int64
}

// structuredError is a descr that is not one string: a list of fields, or a
// pair of type and shape.
type structuredError struct{ text string }

func (e *structuredError) Error() string { return "structured dtype " + e.text }

// parseDict reads a Python dictionary literal as NumPy and other writers spell
// it: keys in any order, either kind of quotes, any blanks, Python 2's u” and
// 3L, a comma at the end or none. It never recurses, so that its stack is
// bounded whatever the text.
func parseDict(text []byte) (dict, error) {
	p := &parser{text: string(text)}
	var d dict
	seen := map[string]bool{}
	if err := p.expect("{"); err != nil {
		return d, err
	}
	for !p.accept("}") {
		at := p.skip()
		key, err := p.quoted()
		if err != nil {
			return d, err
		}
		if seen[key] {
			return d, fmt.Errorf("byte %d: key '%s' given twice; expected once", at, key)
		}
		seen[key] = true
		if err := p.expect(":"); err != nil {
			return d, err
		}
		switch key {
		case "descr":
			d.descr, err = p.descr()
		case "fortran_order":
			d.fortran, err = p.boolean()
		case "shape":
			d.shape, err = p.tuple()
		default:
			err = fmt.Errorf("byte %d: key %q; expected 'descr', 'fortran_order' or 'shape'", at, key)
		}
		if err != nil {
			return d, err
		}
		if p.accept("}") {
			break
		}
		if err := p.expect(","); err != nil {
			return d, err
		}
	}
	if p.skip(); p.at < len(p.text) {
		return d, p.wrong("nothing after the dictionary")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return d, fmt.Errorf("no key '%s'; expected 'descr', 'fortran_order' and 'shape'", key)
		}
	}
	return d, nil
}

// parser walks over the header's text; at is the byte it is at.
type parser struct {
	text string
	at   int
}

// skip passes blanks and answers the position after them.
func (p *parser) skip() int {
	for p.at < len(p.text) && strings.IndexByte(" \t\n\r\f", p.text[p.at]) >= 0 {
		p.at++
	}
	return p.at
}

// accept passes token, and blanks before it, when it comes next.
func (p *parser) accept(token string) bool {
	p.skip()
	if !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) expect(token string) error {
	if !p.accept(token) {
		return p.wrong("'" + token + "'")
	}
	return nil
}

// wrong says what stands at the current place instead of what was wanted.
func (p *parser) wrong(wanted string) error {
	if p.at >= len(p.text) {
		return fmt.Errorf("byte %d: ends; expected %s", p.at, wanted)
	}
	return fmt.Errorf("byte %d: %q; expected %s", p.at, p.text[p.at:p.at+1], wanted)
}

// quoted reads a string. No supported file needs an escape in one.
func (p *parser) quoted() (string, error) {
	p.skip()
	start := p.at
	if p.at < len(p.text) && (p.text[p.at] == 'u' || p.text[p.at] == 'U') {
		p.at++
	}
	if p.at >= len(p.text) || p.text[p.at] != '\'' && p.text[p.at] != '"' {
		p.at = start
		return "", p.wrong("a quoted string")
	}
	mark := p.text[p.at : p.at+1]
	p.at++
	end := strings.IndexAny(p.text[p.at:], mark+"\\\n")
	if end < 0 {
		return "", fmt.Errorf("byte %d: a string without an end; expected %s", start, mark)
	}
	s := p.text[p.at : p.at+end]
	p.at += end
	if p.text[p.at:p.at+1] != mark {
		return "", p.wrong("the string's end, " + mark)
	}
	p.at++
	return s, nil
}

func (p *parser) descr() (string, error) {
	p.skip()
	if rest := p.text[p.at:]; strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "(") {
		return "", &structuredError{abbreviate(rest)}
	}
	return p.quoted()
}

// abbreviate keeps the first value of the text that follows, up to the end of
// its last bracket or 60 bytes, for a message.
func abbreviate(text string) string {
	depth := 0
	for i := 0; i < min(len(text), 60); i++ {
		switch text[i] {
		case '[', '(':
			depth++
		case ']', ')':
			if depth--; depth == 0 {
				return printable(text[:i+1])
			}
		}
	}
	return printable(text[:min(len(text), 60)]) + " …"
}

// printable replaces what a terminal should not be sent.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

func (p *parser) boolean() (bool, error) {
	switch {
	case p.accept("True"):
		return true, nil
	case p.accept("False"):
		return false, nil
	}
	return false, p.wrong("True or False")
}

// tuple reads a tuple of integers. One without a comma is, in Python, none.
func (p *parser) tuple() ([]int64, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	shape := []int64{}
	comma := true
	for !p.accept(")") {
		if !comma {
			return nil, p.wrong("',' or ')'")
		}
		n, err := p.integer()
		if err != nil {
			return nil, err
		}
		shape = append(shape, n)
		comma = p.accept(",")
	}
	if len(shape) == 1 && !comma {
		return nil, fmt.Errorf("byte %d: shape (%d) is a number in Python; expected a tuple, (%d,)", p.at-1, shape[0], shape[0])
	}
	return shape, nil
}

func (p *parser) integer() (int64, error) {
	start := p.skip()
	if p.at < len(p.text) && p.text[p.at] == '-' {
		p.at++
	}
	digits := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	if p.at == digits {
		return 0, p.wrong("an integer")
	}
	number := p.text[start:p.at]
	if p.at < len(p.text) && (p.text[p.at] == 'L' || p.text[p.at] == 'l') {
		p.at++
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil { // only its size can be wrong
		return 0, fmt.Errorf("byte %d: extent %s overflows; expected an int64", start, shorten(number))
	}
	return n, nil
}

// shorten keeps a long number readable.
func shorten(number string) string {
	if len(number) <= 40 {
		return number
	}
	return fmt.Sprintf("%s… of %d digits", number[:20], len(strings.TrimPrefix(number, "-")))
}
