package host

import (
	"sync"

	"github.com/weirgo/weir/internal/driver"
)

// captured are the groups of one call, copied with their addresses.
type captured struct {
	all       []driver.GemmGroup
	addresses []driver.Ptr
}

// captures keeps the memory of calls that are done.
var captures = sync.Pool{New: func() any { return new(captured) }}

// capture copies what has something to do.
func capture(groups []driver.GemmGroup) *captured {
	c := captures.Get().(*captured)
	n := 0
	for i := range groups {
		n += 3 * len(groups[i].Cs)
	}
	if cap(c.addresses) < n {
		c.addresses = make([]driver.Ptr, 0, n) // not to grow: groups hold parts of it
	}
	for i := range groups {
		if g := &groups[i]; g.M > 0 && g.N > 0 && len(g.Cs) > 0 {
			c.all = append(c.all, driver.GemmGroup{Gemm: g.Gemm, As: c.keep(g.As), Bs: c.keep(g.Bs), Cs: c.keep(g.Cs)})
		}
	}
	return c
}

func (c *captured) keep(at []driver.Ptr) []driver.Ptr {
	from := len(c.addresses)
	c.addresses = append(c.addresses, at...)
	return c.addresses[from:]
}

func (c *captured) giveBack() {
	clear(c.all)
	c.all, c.addresses = c.all[:0], c.addresses[:0]
	captures.Put(c)
}

func (c *captured) flops() (n float64) {
	for i := range c.all {
		n += flops(&c.all[i].Gemm, int64(len(c.all[i].Cs)))
	}
	return n
}

// GemmGroups is one piece of work for the stream, however many products it has.
func (b *blas) GemmGroups(st driver.Stream, groups []driver.GemmGroup) error {
	const op = "BLAS.GemmGroups"
	s, err := b.dev.ours(op, st)
	if err != nil {
		return err
	}
	if err := driver.CheckGemmGroups(op, b.dev.name, groups); err != nil {
		return err
	}
	if err := b.count(op); err != nil {
		return err
	}
	c := capture(groups)
	if len(c.all) == 0 {
		c.giveBack()
		b.let()
		return s.usable(op)
	}
	err = s.submit(op, &work{kind: doGemm, blas: b, groups: c})
	if err != nil {
		b.let()
	}
	return err
}
