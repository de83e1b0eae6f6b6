package controlplane

import "strings"

// servicesOnly are the flags of a kube-apiserver that serves what has a part in Services. Most of what it serves by
// default has none, and takes half of a start. It decides about Services as ever. Nobody but the checks asks it, and
// they may do everything.
func servicesOnly() []string {
	off := []string{
		"apps/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1", "events.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1",
		"authentication.k8s.io/v1", "authorization.k8s.io/v1", "certificates.k8s.io/v1", "node.k8s.io/v1", "scheduling.k8s.io/v1", "storage.k8s.io/v1",
		"resource.k8s.io/v1",
	}
	return []string{
		"--runtime-config=" + strings.Join(off, "=false,") + "=false",
		"--authorization-mode=AlwaysAllow",
		// These wait for what is off, and judge pods and volumes only.
		disabledAdmission + ",Priority,RuntimeClass,DefaultStorageClass,PersistentVolumeClaimResize",
	}
}

// everything are the flags of one that serves what a cluster's does.
func everything() []string { return []string{"--authorization-mode=RBAC", disabledAdmission} }

// disabledAdmission disables what asks for the accounts that pods would have to have: nobody creates them.
const disabledAdmission = "--disable-admission-plugins=ServiceAccount"
