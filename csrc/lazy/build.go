package lazy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirgo/weir"
)

// Flags are what Build gives the C compiler besides names.
var Flags = []string{"-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"}

// Build compiles the libraries for an architecture into folder, which exists:
// one archive for each. compiler is the C compiler, with arguments of its own
// if need be; it finds the archiver that goes with it. The compiler's
// architecture is the caller's to see to; with another one its assembler
// refuses. A cancelled ctx ends it and leaves what is finished.
func Build(ctx context.Context, folder string, libraries []Library, arch string, compiler []string) (err error) {
	files, err := Sources(libraries, arch)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "weir-lazy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(work, f.Name), []byte(f.Text), 0o644); err != nil {
			return err
		}
	}

	ar, err := run(ctx, work, compiler, "-print-prog-name=ar")
	if err != nil {
		return err
	}
	compiled := map[string]bool{}
	for _, l := range libraries {
		archive := []string{"rcsD", filepath.Join(folder, "lib"+l.Name+".a")}
		for _, source := range members(l) {
			object := strings.TrimSuffix(source, filepath.Ext(source)) + ".o"
			if !compiled[object] {
				compiled[object] = true
				if _, err := run(ctx, work, compiler, append(append([]string{}, Flags...), "-c", source, "-o", object)...); err != nil {
					return err
				}
			}
			archive = append(archive, object)
		}
		if _, err := run(ctx, work, []string{strings.TrimSpace(ar)}, archive...); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, folder string, program []string, args ...string) (string, error) {
	if len(program) == 0 {
		return "", weir.Argf("lazy.Build", "compiler: got none; expected a command")
	}
	args = append(append([]string{}, program[1:]...), args...)
	cmd := exec.CommandContext(ctx, program[0], args...)
	cmd.Dir = folder
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(errors.String())
		if said != "" {
			said = ":\n" + said
		}
		return "", &weir.Error{Op: "lazy.Build", Message: fmt.Sprintf("%s %s%s", program[0], strings.Join(args, " "), said), Err: err}
	}
	return out.String(), nil
}
