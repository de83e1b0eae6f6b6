package apiserver

// Prepare makes what the servers of this process share: the structure of the served types and the documents of the schema.
// Otherwise the first request waits for it, a tenth of a second. It is safe for concurrent use.
func Prepare() {
	typeConverter()
	for _, gv := range groupVersions {
		openAPIOf(gv)
	}
}
