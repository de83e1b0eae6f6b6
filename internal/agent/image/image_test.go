package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const tag = "conformance-agent:v1"

// writeELF writes a file that looks like a program, of which an image can be made or not. It returns its path and content.
func writeELF(t *testing.T, machine elf.Machine, abi elf.OSABI, segment elf.ProgType) (path string, content []byte) {
	t.Helper()
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION], h.Ident[elf.EI_OSABI] = byte(elf.EV_CURRENT), byte(abi)
	var b bytes.Buffer
	for _, part := range []any{h, elf.Prog64{Type: uint32(segment)}, bytes.Repeat([]byte(machine.String()), 300)} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "conformance-"+machine.String())
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, b.Bytes()
}

func amd64(t *testing.T) (path string, content []byte) {
	return writeELF(t, elf.EM_X86_64, elf.ELFOSABI_NONE, elf.PT_LOAD)
}

func arm64(t *testing.T) (path string, content []byte) {
	return writeELF(t, elf.EM_AARCH64, elf.ELFOSABI_LINUX, elf.PT_LOAD)
}

// archive writes the archive of the programs.
func archive(t *testing.T, paths ...string) []byte {
	t.Helper()
	images, err := FromExecutables(paths)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteArchive(&b, tag, images); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// expectImage looks whether an image is the agent's, with the program in it.
func expectImage(t *testing.T, img v1.Image, arch string, content []byte) {
	t.Helper()
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if config.OS != "linux" || config.Architecture != arch || !slices.Equal(c.Entrypoint, []string{"/conformance", "agent"}) || c.User != "65532:65532" {
		t.Errorf("configured as %+v", config)
	}
	for label, want := range map[string]string{"title": "conformance-agent", "version": "devel", "source": source} {
		if got := c.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	files := tar.NewReader(layer)
	h, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	if h.Name != "conformance" || h.Typeflag != tar.TypeReg || h.Mode != 0o755 || h.Uid != 65532 || h.Gid != 65532 || h.Size != int64(len(content)) ||
		!h.ModTime.Equal(epoch) {
		t.Errorf("the program is %+v", h)
	}
	if got, err := io.ReadAll(files); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v; they are not those of the program", len(got), err)
	}
	if _, err := files.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("the layer holds more than the program: %v", err)
	}
}

func TestArchiveOfOnePlatform(t *testing.T) {
	path, content := amd64(t)
	file := archive(t, path)
	want, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }, &want)
	if err != nil {
		t.Fatal(err)
	}
	expectImage(t, img, "amd64", content)
}

func TestArchiveOfSeveralPlatforms(t *testing.T) {
	intel, contentOfIntel := amd64(t)
	arm, contentOfARM := arm64(t)
	dir := t.TempDir()
	files := tar.NewReader(bytes.NewReader(archive(t, arm, intel)))
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s comes twice", h.Name)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(outer); err != nil {
		t.Error(err)
	}
	named, err := outer.IndexManifest()
	if err != nil || len(named.Manifests) != 1 {
		t.Fatalf("%+v, %v", named, err)
	}
	// Engines take the name as it is: with the registry that they mean by its absence.
	if got := named.Manifests[0].Annotations["io.containerd.image.name"]; got != "docker.io/library/conformance-agent:v1" {
		t.Errorf("the name is %q", got)
	}
	platforms, err := outer.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	expectPlatforms(t, platforms, contentOfIntel, contentOfARM)
}

// expectPlatforms looks whether an index has the image of amd64, and then that of arm64.
func expectPlatforms(t *testing.T, index v1.ImageIndex, contents ...[]byte) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != len(contents) {
		t.Fatalf("%+v, %v", manifest, err)
	}
	for i, arch := range []string{"amd64", "arm64"} {
		m := manifest.Manifests[i]
		if m.Platform == nil || m.Platform.OS != "linux" || m.Platform.Architecture != arch {
			t.Errorf("platform %d is %+v, want %s", i, m.Platform, arch)
		}
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		expectImage(t, img, arch, contents[i])
	}
}

func TestSameProgramsGiveTheSameBytes(t *testing.T) {
	intel, _ := amd64(t)
	arm, _ := arm64(t)
	one, several := archive(t, intel), archive(t, intel, arm)
	for _, path := range []string{intel, arm} {
		if err := os.Chtimes(path, time.Now(), time.Unix(1_000_000_000, 0)); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one, archive(t, intel)) {
		t.Error("two archives of one platform differ")
	}
	if !bytes.Equal(several, archive(t, arm, intel)) {
		t.Error("two archives of several platforms differ")
	}
}

func TestProgramsThatCannotRunAreRefused(t *testing.T) {
	static, _ := amd64(t)
	other, _ := amd64(t)
	dynamic, _ := writeELF(t, elf.EM_X86_64, elf.ELFOSABI_NONE, elf.PT_INTERP)
	foreign, _ := writeELF(t, elf.EM_RISCV, elf.ELFOSABI_NONE, elf.PT_LOAD)
	bsd, _ := writeELF(t, elf.EM_X86_64, elf.ELFOSABI_FREEBSD, elf.PT_LOAD)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{dynamic}, "linked dynamically"},
		{[]string{static, dynamic}, "CGO_ENABLED=0 go build"},
		{[]string{foreign}, "is for riscv"},
		{[]string{bsd}, "no program for Linux"},
		{[]string{script}, "no program for Linux"},
		{[]string{script}, "CGO_ENABLED=0 go build"},
		{[]string{filepath.Join(t.TempDir(), "nowhere")}, "nowhere"},
		{[]string{t.TempDir()}, "look at the program"},
		{[]string{static, other}, "are both for linux/amd64"},
	} {
		if _, err := FromExecutables(c.paths); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestProgramThatChangesIsNoticed(t *testing.T) {
	for what, change := range map[string]func([]byte) []byte{
		"shorter": func(b []byte) []byte { return b[:len(b)-1] },
		"longer":  func(b []byte) []byte { return append(b, 0) },
	} {
		path, content := amd64(t)
		e, err := inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(content), 0o600); err != nil {
			t.Fatal(err)
		}
		layer, err := e.layer()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, layer); !errors.Is(err, errChanged) {
			t.Errorf("%s: got %v", what, err)
		}
		layer.Close()
	}
}

func TestReferenceIsATag(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "devel": "devel", "": "devel", "v0.0.0-20260102030405-abcdef+dirty": "v0.0.0-20260102030405-abcdef-dirty",
		"+x y/ä": "x-y--", strings.Repeat("v", 200): strings.Repeat("v", 128),
	} {
		got := Reference(version)
		if got != "conformance-agent:"+want {
			t.Errorf("%q: %s, want %s", version, got, want)
		}
		if _, err := name.NewTag(got); err != nil {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/agent:v1"
	intel, contentOfIntel := amd64(t)
	arm, contentOfARM := arm64(t)
	for _, paths := range [][]string{{intel}, {arm, intel}} {
		images, err := FromExecutables(paths)
		if err != nil {
			t.Fatal(err)
		}
		byDigest, err := Push(t.Context(), reference, images)
		if err != nil {
			t.Fatal(err)
		}
		for _, pushed := range []string{reference, byDigest} {
			ref, err := name.ParseReference(pushed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := remote.Get(ref)
			if err != nil {
				t.Fatal(err)
			}
			if len(paths) == 1 {
				img, err := got.Image()
				if err != nil {
					t.Fatal(err)
				}
				expectImage(t, img, "amd64", contentOfIntel)
				continue
			}
			index, err := got.ImageIndex()
			if err != nil {
				t.Fatal(err)
			}
			expectPlatforms(t, index, contentOfIntel, contentOfARM)
		}
	}
	server.Close()
	images, err := FromExecutables([]string{intel})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Push(t.Context(), reference, images); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("push %s", reference)) {
		t.Errorf("to nobody: %v", err)
	}
}

func TestPlatformAndTag(t *testing.T) {
	path, _ := arm64(t)
	img, err := FromExecutable(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Platform(img); got != "linux/arm64" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if err := WriteArchive(io.Discard, "no tag!", []v1.Image{img}); err == nil {
		t.Error("an archive was written under a name that is none")
	}
}
