package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const module = "github.com/weirgo/weir"

// house lists the packages from the roof down: one may import only what stands
// on a later line. A name stands for itself and all below it that have no line
// of their own.
var house = []string{
	"cmd examples",
	"bench internal/ising",
	"native",
	"tensor/grad",
	"tensor/flow",
	"tensor",
	"tensor/internal",
	"internal/graph",
	"async",
	"internal/devicetest",
	"provider/blas provider/solver provider/raft",
	"provider",
	"buffer",
	"runtime",
	"profile",
	"stream",
	"internal/lease",
	"scheduler",
	"internal/driver/drivertest",
	"internal/driver/fault internal/driver/hollow",
	"internal/driver/host internal/driver/cuda",
	"internal/hostblas",
	"internal/driver",
	"internal/cudaenv csrc/buildkit",
	"csrc/kit",
	"internal/sharedlib internal/rows",
	"internal/hostmem internal/garbage internal/callers internal/lint csrc",
	"dtype",
	".",
}

// libraries are the modules that packages which programs import may use;
// everything else stays in commands, benchmarks and tests.
var libraries = []string{
	"github.com/ebitengine/purego",
	"github.com/google/renameio/v2",
	"github.com/hashicorp/golang-lru/v2",
	"github.com/sbinet/npyio",
	"github.com/x448/float16",
	"golang.org/x/sync",
	"golang.org/x/sys",
	"gonum.org/v1/gonum",
	"gorgonia.org/cu", // under the tag cuda
}

type file struct {
	name    string // from the module's root, with slashes
	dir     string
	test    bool
	syntax  *ast.File
	imports map[string]string // path to local name, "" if not renamed
}

func files(t *testing.T) []file {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var all []file
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "build" || rel != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(set, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		f := file{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), syntax: syntax, imports: map[string]string{}}
		for _, spec := range syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			local := ""
			if spec.Name != nil {
				local = spec.Name.Name
			}
			f.imports[imported] = local
		}
		all = append(all, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("%d files found; the walk missed the tree", len(all))
	}
	return all
}

// storey is the line of house that dir stands on, -1 if on none.
func storey(dir string) int {
	for {
		for i, line := range house {
			if slices.Contains(strings.Fields(line), dir) {
				return i
			}
		}
		if dir == "." {
			return -1
		}
		dir = path.Dir(dir)
		if dir == "." {
			return -1 // the root package does not take in what has no line
		}
	}
}

func TestImportsPointDownwards(t *testing.T) {
	for _, f := range files(t) {
		from := storey(f.dir)
		if from < 0 {
			t.Errorf("%s: its folder has no place in the house", f.name)
			continue
		}
		if f.test {
			continue
		}
		for imported := range f.imports {
			rest, ours := strings.CutPrefix(imported+"/", module+"/")
			if !ours {
				continue
			}
			to := strings.TrimSuffix(rest, "/")
			if to == "" {
				to = "."
			}
			if to != f.dir && storey(to) <= from && !(storey(to) == from && path.Dir(to) == path.Dir(f.dir) && strings.HasPrefix(f.dir, "tensor/internal/")) {
				t.Errorf("%s imports %s, which does not stand below it", f.name, imported)
			}
		}
	}
}

func TestLibraryPackagesImportLibrariesOnly(t *testing.T) {
	for _, f := range files(t) {
		top, _, _ := strings.Cut(f.dir, "/")
		if f.test || slices.Contains([]string{"cmd", "bench", "examples"}, top) || f.dir == "internal/driver/drivertest" {
			continue
		}
		for imported := range f.imports {
			first, _, _ := strings.Cut(imported, "/")
			if !strings.Contains(first, ".") || imported == module || strings.HasPrefix(imported, module+"/") {
				continue
			}
			if !slices.ContainsFunc(libraries, func(l string) bool { return imported == l || strings.HasPrefix(imported, l+"/") }) {
				t.Errorf("%s imports %s, which no library package may", f.name, imported)
			}
		}
	}
}

func TestCgoStaysInTheCUDADriver(t *testing.T) {
	for _, f := range files(t) {
		if _, ok := f.imports["C"]; ok && !strings.HasPrefix(f.dir, "internal/driver/cuda") && !strings.HasPrefix(f.dir, "csrc") {
			t.Errorf("%s imports \"C\"", f.name)
		}
	}
}

func TestGoRuntimeIsImportedAsGoruntimeBesideOurs(t *testing.T) {
	for _, f := range files(t) {
		local, theirs := f.imports["runtime"]
		_, ours := f.imports[module+"/runtime"]
		if theirs && (ours || f.dir == "runtime") && local != "goruntime" {
			t.Errorf("%s: import Go's runtime as goruntime", f.name)
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	for _, f := range files(t) {
		if !f.test && f.dir != "internal/driver/drivertest" && f.dir != "internal/devicetest" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s sleeps", f.name)
				}
			}
			return true
		})
	}
}

func TestEveryTestedPackageLooksForLeakedGoroutines(t *testing.T) {
	tested, guarded := map[string]bool{}, map[string]bool{}
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		tested[f.dir] = true
		if _, ok := f.imports["go.uber.org/goleak"]; ok {
			guarded[f.dir] = true
		}
	}
	for dir := range tested {
		if !guarded[dir] {
			t.Errorf("%s has tests and no goleak", dir)
		}
	}
}

func TestEveryPackageHasADocComment(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range files(t) {
		if !f.test {
			documented[f.dir] = documented[f.dir] || f.syntax.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

func TestNoCommittedFileIsLarge(t *testing.T) {
	const limit = 1 << 20
	root := "../.."
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "build" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := os.Stat(p)
		if err == nil && info.Size() > limit {
			t.Errorf("%s has %d bytes; expected at most %d", p, info.Size(), limit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
