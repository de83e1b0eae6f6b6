package service

import "testing"

// BenchmarkCreate defaults, allocates, validates and deletes a Service with an address of each family and a node port.
func BenchmarkCreate(b *testing.B) {
	c := newCluster(b, rangeV4, rangeV6)
	for b.Loop() {
		svc := newService(ofType(typeNodePort), withPolicy(dual))
		c.rules.Default(svc)
		tx, err := c.rules.Create(svc, false)
		if err != nil {
			b.Fatal(err)
		}
		tx.Commit()
		c.rules.Delete(svc)
	}
}
