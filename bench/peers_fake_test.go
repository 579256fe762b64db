package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"
)

// A process of this test that is run with peers.py is a peer without Python. That
// file then has what it does: a word, and perhaps an address to connect to.

func isFakePeer() bool { return len(os.Args) > 1 && filepath.Base(os.Args[1]) == "peers.py" }

// fakePeer has numpy, which is right, torch, which does what the word says, and jax,
// which is right again.
func fakePeer() {
	script, err := os.ReadFile(os.Args[1])
	check(err)
	does, address, _ := strings.Cut(string(script), " ")
	protocol := peersProtocol
	switch does {
	case "silent":
		select {}
	case "old":
		protocol = 0
	case "sleeps": // what a child of the child does
		connect(address)
		select {}
	}
	say(map[string]any{"protocol": protocol, "python": "3.x", "libraries": map[string]string{"numpy": "1.0", "torch": "2.0", "jax": "3.0"}})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var r request
		check(json.Unmarshal(in.Bytes(), &r))
		a := peerAnswer{Variant: "loop", Device: "host", Seconds: []float64{3e-6, 1e-6, 2e-6}}
		if r.Library == "torch" {
			switch does {
			case "hangs":
				child := filepath.Join(filepath.Dir(os.Args[1]), "child", "peers.py")
				check(os.Mkdir(filepath.Dir(child), 0o700))
				check(os.WriteFile(child, []byte("sleeps "+address), 0o600))
				check(exec.Command(os.Args[0], child).Start())
				connect(address)
				select {}
			case "dies":
				fmt.Fprint(os.Stderr, "a warning\nthe sky fell\n")
				os.Exit(3)
			case "chatters":
				fmt.Println("hello")
			case "fails":
				a.Error = "NotImplementedError: no such thing"
			case "quick":
				a.Seconds = []float64{0}
			}
		}
		for k, v := range fakeProducts(&r) {
			if r.Library == "torch" && does == "errs" {
				v[len(v)-1]++
			}
			data := peerInput(v).Data
			if r.Library == "torch" && does == "shortens" {
				data = data[1:]
			}
			name := fmt.Sprintf("%s-%d", r.Library, k)
			check(os.WriteFile(filepath.Join(r.Folder, name), data, 0o600))
			if r.Library != "torch" || does != "omits" {
				a.Results = append(a.Results, name)
			}
		}
		say(a)
		say(map[string]bool{"done": true})
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func say(v any) { check(json.NewEncoder(os.Stdout).Encode(v)) }

func connect(address string) {
	if address == "" {
		return
	}
	_, err := net.Dial("tcp", address)
	check(err)
}

// fakeProducts are the results that are asked for, of float32 matrices.
func fakeProducts(r *request) (results [][]float32) {
	var values [][]float32
	var shapes [][]int
	for _, in := range r.Inputs {
		data, err := os.ReadFile(in.File)
		check(err)
		values = append(values, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4))
		shapes = append(shapes, in.Shape)
	}
	for _, p := range r.Products {
		a, b, m, k, n := values[p[0]], values[p[1]], shapes[p[0]][0], shapes[p[0]][1], shapes[p[1]][1]
		c := make([]float32, m*n)
		for i := range c {
			for l := range k {
				c[i] += a[i/n*k+l] * b[l*n+i%n]
			}
		}
		values, shapes = append(values, c), append(shapes, []int{m, n})
	}
	for _, k := range r.Results {
		results = append(results, values[len(r.Inputs)+k])
	}
	return results
}
