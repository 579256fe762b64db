package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// Plot is a picture of a scenario's cases: microseconds per operation of Weir, the
// floor and peers, against the size or the count of the cases' Points.
type Plot struct {
	Name  string // as a file's, without an ending: "gemm-small-size"
	title string
	axis  string
	lines []plotLine
}

type plotLine struct {
	series string
	of     string // Weir, floor or a peer
	points plotter.XYs
}

// Plots answers the plots of a run: for each scenario one against the size for
// every count that has several sizes, and one against the count for every such
// size. A case that failed, or whose Point has no series, is in none.
func Plots(h Header, results []Result) []Plot {
	var scenarios []string
	of := map[string][]Result{}
	for _, r := range results {
		if r.At.Series == "" || r.Err != nil || r.Skipped != "" {
			continue
		}
		if len(of[r.Scenario]) == 0 {
			scenarios = append(scenarios, r.Scenario)
		}
		of[r.Scenario] = append(of[r.Scenario], r)
	}
	size, count := func(p Point) int { return p.Size }, func(p Point) int { return p.Count }
	var all []Plot
	for _, s := range scenarios {
		all = append(all, against(h, s, of[s], "size", size, "count", count)...)
		all = append(all, against(h, s, of[s], "count", count, "size", size)...)
	}
	return all
}

// against makes the plots of one scenario against x, one for each value of fixed.
func against(h Header, scenario string, results []Result, xName string, x func(Point) int, fixedName string, fixed func(Point) int) (all []Plot) {
	var values []int
	for _, r := range results {
		values = append(values, fixed(r.At))
	}
	slices.Sort(values)
	for _, v := range slices.Compact(values) {
		p := Plot{Name: scenario + "-" + xName, axis: xName}
		what := ""
		if v > 0 {
			p.Name += fmt.Sprintf("-%s%d", fixedName, v)
			what = fmt.Sprintf(", %s %d", fixedName, v)
		}
		p.title = fmt.Sprintf("%s%s\n%s, %s", scenario, what, h.Device, h.Date.Format(dateLayout))
		for _, r := range results {
			if fixed(r.At) == v && x(r.At) > 0 {
				p.add(r, float64(x(r.At)))
			}
		}
		if p.settle() {
			all = append(all, p)
		}
	}
	return all
}

// add adds a case's points at x.
func (p *Plot) add(r Result, x float64) {
	u := Unit(r.Unit)
	point := func(of string, value float64) {
		i := slices.IndexFunc(p.lines, func(l plotLine) bool { return l.series == r.At.Series && l.of == of })
		if i < 0 {
			i = len(p.lines)
			p.lines = append(p.lines, plotLine{series: r.At.Series, of: of})
		}
		if value > 0 { // what took no time has no logarithm
			p.lines[i].points = append(p.lines[i].points, plotter.XY{X: x, Y: u.seconds(value) * 1e6})
		}
	}
	point("Weir", r.Value)
	point("floor", r.Floor)
	for _, peer := range r.Peers {
		if peer.Err == nil {
			point(peer.Name, peer.Value)
		}
	}
}

// settle orders the points and drops lines that have none; it says whether there
// is anything to see: a line of two points.
func (p *Plot) settle() bool {
	p.lines = slices.DeleteFunc(p.lines, func(l plotLine) bool { return len(l.points) == 0 })
	seen := false
	for _, l := range p.lines {
		slices.SortFunc(l.points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		seen = seen || l.points[0].X < l.points[len(l.points)-1].X
	}
	return seen
}

// legend answers the title and what lines are called: the series of all, where they
// have one, is in the title.
func (p *Plot) legend() (title string, names []string) {
	series := p.lines[0].series
	one := !slices.ContainsFunc(p.lines, func(l plotLine) bool { return l.series != series })
	for _, l := range p.lines {
		name := l.of
		if !one {
			name = l.series + ": " + name
		}
		names = append(names, name)
	}
	if one {
		return series + "\n" + p.title, names
	}
	return p.title, names
}

// Write writes the picture as PNG. Both axes are logarithmic.
func (p *Plot) Write(w io.Writer) error {
	drawing := plot.New()
	title, names := p.legend()
	drawing.Title.Text = title
	drawing.X.Label.Text, drawing.Y.Label.Text = p.axis, "us per operation"
	drawing.X.Scale, drawing.Y.Scale = plot.LogScale{}, plot.LogScale{}
	drawing.X.Tick.Marker, drawing.Y.Tick.Marker = p.ticks(), plot.LogTicks{Prec: -1}
	drawing.Legend.Top, drawing.Legend.Left = true, true
	drawing.Add(plotter.NewGrid())
	for i, l := range p.lines {
		line, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/len(plotutil.DefaultColors))
		points.Color, points.Shape = plotutil.Color(i), plotutil.Shape(i)
		drawing.Add(line, points)
		drawing.Legend.Add(names[i], line, points)
	}
	p.makeRoom(&drawing.Y)
	png, err := drawing.WriterTo(10*vg.Inch, 7*vg.Inch, "png")
	if err != nil {
		return err
	}
	_, err = png.WriteTo(w)
	return err
}

// makeRoom stretches the axis upwards, so that the legend covers no line.
func (p *Plot) makeRoom(y *plot.Axis) {
	if y.Min == y.Max {
		y.Min, y.Max = y.Min/2, y.Max*2
	}
	legend := min(0.03*float64(len(p.lines)), 0.6) // of the height
	y.Max *= math.Pow(y.Max/y.Min, legend/(1-legend))
}

// ticks are at the values that were measured.
func (p *Plot) ticks() plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, l := range p.lines {
		for _, xy := range l.points {
			if !slices.ContainsFunc(ticks, func(t plot.Tick) bool { return t.Value == xy.X }) {
				ticks = append(ticks, plot.Tick{Value: xy.X, Label: fmt.Sprintf("%g", xy.X)})
			}
		}
	}
	return ticks
}
