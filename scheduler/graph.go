package scheduler

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirgo/weir"
)

// Info is what a listing says of a task.
type Info struct {
	ID    uint64
	Name  string
	State State
	Site  string     // where it was made
	Waits string     // what a parked one waits for
	For   []uint64   // the tasks that can end the wait, as far as is known
	Gates []GateInfo // what it holds
	Stack string     // of its creation; Full
}

// String is a line without the stack.
func (i Info) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "task %q (#%d)", i.Name, i.ID)
	if i.Site != "" {
		fmt.Fprintf(&b, " made at %s", i.Site)
	}
	if i.Waits != "" {
		fmt.Fprintf(&b, " waits for %s", i.Waits)
		for k, id := range i.For {
			fmt.Fprintf(&b, "%s#%d", map[bool]string{true: ", held by ", false: " and "}[k == 0], id)
		}
	} else {
		fmt.Fprintf(&b, " is %v", i.State)
	}
	for k, g := range i.Gates {
		fmt.Fprintf(&b, "%s%v", map[bool]string{true: "; it holds ", false: ", "}[k == 0], g)
	}
	return strings.ReplaceAll(b.String(), "\n", `\n`)
}

// Phase is where a gate stands.
type Phase int

const (
	Closed   Phase = iota // what comes before it is not done
	Open                  // it may be used
	Released              // it was let go of
)

// String is the phase in a word.
func (p Phase) String() string { return [...]string{"closed", "open", "released"}[p] }

// Role is what a gate is for.
type Role int

const (
	Reads Role = iota
	Writes
)

// String is the role in a word.
func (r Role) String() string { return [...]string{"read", "write"}[r] }

// GateInfo is what a listing says of a gate.
type GateInfo struct {
	Value string // the value's name
	Epoch int    // the number of its write; reads have that of the write before them
	Role  Role
	Phase Phase
}

// String is as "read of theta, epoch 2 (closed)".
func (g GateInfo) String() string {
	return fmt.Sprintf("%v of %s, epoch %d (%v)", g.Role, g.Value, g.Epoch, g.Phase)
}

// Tasks lists the tasks that live, oldest first; none at level Off.
func (b *table) Tasks() []Info {
	if b.level == Off {
		return nil
	}
	return infos(b.live())
}

func infos(all []*Task) []Info {
	out := make([]Info, 0, len(all))
	for _, t := range all {
		out = append(out, t.info())
	}
	return out
}

func (t *Task) info() Info {
	b := t.table()
	b.mu.Lock()
	i := Info{ID: t.id.Load(), Name: t.name, State: t.state, Stack: t.stack}
	gates := append([]Gate(nil), t.gates...)
	what := t.what
	b.mu.Unlock()
	i.Site = t.site.String()
	for _, g := range gates {
		i.Gates = append(i.Gates, g.Describe())
	}
	if what != nil {
		i.Waits = what.String()
		for _, h := range what.Holders() {
			if h != nil {
				i.For = append(i.For, h.id.Load())
			}
		}
	}
	return i
}

// parkedOn is what t waits for if it is parked, else nil, and which of its waits
// that is.
func (t *Task) parkedOn() (Wait, uint64) {
	b := t.table()
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.state != Parked {
		return nil, 0
	}
	return t.what, t.waits
}

// Deadlock is the error of tasks that cannot go on: each waits for another one,
// or for what nobody is known to give. It is an ErrDeadlock.
type Deadlock struct {
	Tasks  []Info // all that wait; of a pool's watchdog, those of the circle
	Circle []Info // those that wait for one another in a circle, each for the next; may be empty
	Caller string // what a caller that is no task waits for; may be empty
}

// Error lists the tasks, one a line, and the circle by name.
func (d *Deadlock) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock: %d tasks wait and none can run", len(d.Tasks))
	if d.Caller != "" {
		fmt.Fprintf(&b, "\n\tthe caller waits for %s", d.Caller)
	}
	for _, t := range d.Tasks {
		fmt.Fprintf(&b, "\n\t%v", t)
	}
	if len(d.Circle) > 0 {
		b.WriteString("\n\tcircle: ")
		for _, t := range d.Circle {
			fmt.Fprintf(&b, "%s → ", t.Name)
		}
		b.WriteString(d.Circle[0].Name)
	}
	return b.String()
}

// Unwrap is ErrDeadlock.
func (d *Deadlock) Unwrap() error { return weir.ErrDeadlock }

func deadlock(all, circle []*Task) *Deadlock {
	return &Deadlock{Tasks: infos(all), Circle: infos(circle)}
}

// jam is the wait of a task that cannot go on.
type jam struct {
	wait    uint64 // which of its waits
	holders []*Task
	any     bool // one of them would do
	stuck   int  // how many of them can't go on either
}

// jammed finds those of all that can only be woken by one another. What it sees of
// each it sees at another time; a second look, at those that the first one found
// and that did not wake up in between, is sure.
func jammed(all []*Task, before map[*Task]*jam) map[*Task]*jam {
	in := make(map[*Task]*jam)
	for _, t := range all {
		what, wait := t.parkedOn()
		if what == nil || t.awake.Load() || t.over() != nil {
			continue
		}
		ends := what.Ends()
		if b := before[t]; ends >= ByQueue || before != nil && (b == nil || b.wait != wait) {
			continue
		}
		in[t] = &jam{wait: wait, holders: what.Holders(), any: ends == ByHolder}
	}
	needed := make(map[*Task][]*Task) // who waits for it
	var free []*Task
	for _, t := range all {
		j := in[t]
		if j == nil {
			continue
		}
		for _, h := range j.holders {
			if in[h] != nil {
				j.stuck++
				needed[h] = append(needed[h], t)
			}
		}
		if j.free() {
			free = append(free, t)
		}
	}
	for len(free) > 0 {
		h := free[len(free)-1]
		free = free[:len(free)-1]
		if in[h] == nil {
			continue
		}
		delete(in, h)
		for _, t := range needed[h] {
			if j := in[t]; j != nil {
				if j.stuck--; j.free() {
					free = append(free, t)
				}
			}
		}
	}
	return in
}

// free says that somebody may end the wait.
func (j *jam) free() bool { return j.stuck == 0 || j.any && j.stuck < len(j.holders) }

// circleOf finds tasks that wait for one another in a circle, each for one of the
// next; nil if there are none.
func circleOf(all []*Task, next func(*Task) []*Task) []*Task {
	const (
		onPath = 1
		done   = 2
	)
	mark := make(map[*Task]int, len(all))
	for _, root := range all {
		if mark[root] != 0 {
			continue
		}
		var path []*Task
		var todo [][]*Task // of each task on the path: whom it waits for, still to be followed
		enter := func(t *Task) {
			mark[t] = onPath
			path = append(path, t)
			todo = append(todo, next(t))
		}
		enter(root)
		for len(path) > 0 {
			k := len(path) - 1
			if len(todo[k]) == 0 {
				mark[path[k]] = done
				path, todo = path[:k], todo[:k]
				continue
			}
			h := todo[k][0]
			todo[k] = todo[k][1:]
			switch {
			case h == nil:
			case mark[h] == onPath:
				return path[slices.Index(path, h):]
			case mark[h] == 0:
				enter(h)
			}
		}
	}
	return nil
}

// DOT writes tasks as a graph for Graphviz: tasks are boxes, epochs of values
// ellipses; a solid edge is a gate, from what is read to who reads it and from
// who writes to what is written; a dashed one leads from who waits to whom it
// waits for.
func DOT(w io.Writer, tasks []Info) error {
	var b strings.Builder
	b.WriteString("digraph tasks {\n\tnode [fontname=\"sans-serif\"];\n")
	seen := map[string]bool{}
	for _, t := range tasks {
		label := fmt.Sprintf("%s\\n#%d %v", escape(t.Name), t.ID, t.State)
		if t.Waits != "" {
			label += "\\nwaits for " + escape(t.Waits)
		}
		fmt.Fprintf(&b, "\tt%d [shape=box, label=\"%s\"];\n", t.ID, label)
		for _, g := range t.Gates {
			id := fmt.Sprintf("\"%s@%d\"", escape(g.Value), g.Epoch)
			if !seen[id] {
				seen[id] = true
				fmt.Fprintf(&b, "\t%s [shape=ellipse, label=\"%s\\nepoch %d\"];\n", id, escape(g.Value), g.Epoch)
			}
			from, to := id, fmt.Sprintf("t%d", t.ID)
			if g.Role == Writes {
				from, to = to, from
			}
			fmt.Fprintf(&b, "\t%s -> %s [label=\"%v\"];\n", from, to, g.Phase)
		}
	}
	for _, t := range tasks {
		for _, id := range t.For {
			fmt.Fprintf(&b, "\tt%d -> t%d [style=dashed];\n", t.ID, id)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func escape(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) }

// Text writes tasks, one a line, with the stacks of their creation where they
// are kept.
func Text(w io.Writer, tasks []Info) error {
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%v\n", t)
		if t.Stack != "" {
			fmt.Fprintf(&b, "\t%s\n", strings.ReplaceAll(strings.TrimSpace(t.Stack), "\n", "\n\t"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
