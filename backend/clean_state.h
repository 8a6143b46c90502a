// SPDX-License-Identifier: Apache-2.0
// Dispatch state for calling back into ATen from inside a kernel: no autograd, no autocast, no
// user modes, no functorch layers; and no `__torch_function__` modes in Python that is called. For
// the length of a scope, on this thread.
#pragma once

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace torch_tpu {

class CleanState {
 public:
  CleanState() : saved_(c10::impl::tls_local_dispatch_key_set()) {
    c10::impl::_force_tls_local_dispatch_key_set(clean());
  }
  ~CleanState() { c10::impl::_force_tls_local_dispatch_key_set(saved_); }
  CleanState(const CleanState&) = delete;
  CleanState& operator=(const CleanState&) = delete;

 private:
  static c10::impl::LocalDispatchKeySet clean() {
    using c10::DispatchKey;
    c10::impl::PODLocalDispatchKeySet pod;
    pod.set_included(c10::DispatchKeySet(DispatchKey::BackendSelect));
    pod.set_excluded(
        c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset |
        c10::DispatchKeySet(
            {DispatchKey::Python, DispatchKey::PythonTLSSnapshot, DispatchKey::PythonDispatcher,
             DispatchKey::PreDispatch, DispatchKey::Functionalize,
             DispatchKey::FuncTorchDynamicLayerFrontMode,
             DispatchKey::FuncTorchDynamicLayerBackMode, DispatchKey::FuncTorchGradWrapper,
             DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchVmapMode}));
    return c10::impl::LocalDispatchKeySet(pod);
  }
  c10::impl::LocalDispatchKeySet saved_;
};

class WithoutTorchFunction {
 public:
  WithoutTorchFunction() : saved_(at::impl::PythonTorchFunctionTLS::get_disabled_state()) {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(
        at::impl::TorchFunctionDisabledState::ALL_DISABLED);
  }
  ~WithoutTorchFunction() { at::impl::PythonTorchFunctionTLS::set_disabled_state(saved_); }
  WithoutTorchFunction(const WithoutTorchFunction&) = delete;
  WithoutTorchFunction& operator=(const WithoutTorchFunction&) = delete;

 private:
  at::impl::TorchFunctionDisabledState saved_;
};

}  // namespace torch_tpu
