package programs

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// CachedOrBuilt returns the components, which it builds unless they were built or fetched before.
func CachedOrBuilt(ctx context.Context, o BuildOptions) (*Binaries, error) {
	v, err := ParseVersion(o.Version)
	if err != nil {
		return nil, err
	}
	if o.CacheDir == "" {
		if o.CacheDir, err = DefaultCacheDir(); err != nil {
			return nil, err
		}
	}
	if b, err := lookUpFetched(o.CacheDir, v, o.Components); err == nil {
		return b, nil
	}
	return Build(ctx, o)
}

// InFolder takes the programs from a folder that the user names. It checks that they run and, if a version is asked
// for, that they are of it.
func InFolder(ctx context.Context, dir, want string, components []Component, servers ServerOptions) (Version, *Binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Version{}, nil, err
	}
	b := &Binaries{Dir: dir, Servers: servers}
	var missing []string
	for _, c := range components {
		if info, err := os.Stat(b.Path(c)); err != nil || !info.Mode().IsRegular() {
			missing = append(missing, binaryName(c))
		}
	}
	if len(missing) > 0 {
		return Version{}, nil, fmt.Errorf("the folder %s has no program %s: put it there, or name no folder to have everything built", dir, strings.Join(missing, ", nor "))
	}
	v, err := b.ServedVersion(ctx, want)
	if err != nil {
		return Version{}, nil, err
	}
	if servers.EtcdCommand != "" {
		return v, b, nil
	}
	if b.EtcdVersion, err = etcdSays(ctx, b.Path(Etcd)); err != nil {
		return Version{}, nil, err
	}
	if info, err := buildinfo.ReadFile(b.Path(APIServer)); err == nil && servers.APIServerCommand == "" {
		b.GoVersion = info.GoVersion
	}
	return v, b, nil
}
