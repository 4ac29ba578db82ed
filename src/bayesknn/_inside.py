"""How a kernel is compiled that other kernels call: as a part of their machine code.

numba makes three things of every function: machine code, a wrapper by which Python calls it, and
one for C. Callers that are compiled take none of them: they are linked with its intermediate code
and optimised together with it. For a helper the three take longer than all the rest.
"""

from typing import Any

from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _Library(JITCodeLibrary):
    """Intermediate code to be linked, of which no machine code is made."""

    def _optimize_final_module(self) -> None:
        """Leave that to the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerInside(NativeLowering):
    _name = "lower_inside"

    def run_pass(self, state: Any) -> bool:
        """Write the intermediate code, and tell numba where callers find it."""
        state.library = _Library(state.targetctx.codegen(), state.func_id.func_qualname)
        # A copy: the flags that a function is typed under are a key of numba's.
        state.flags = state.flags.copy()
        state.flags.no_cpython_wrapper = True
        state.flags.no_cfunc_wrapper = True
        state.flags.no_compile = True
        super().run_pass(state)
        code = state.cr
        # What numba knows it by; Python cannot call it.
        handle = make_function(
            code.fndesc.lookup_module(), code.fndesc.qualname, "", 0, code.env, (state.library,)
        )
        state.targetctx.insert_user_function(handle, code.fndesc, [state.library])
        state.cr = code._replace(cfunc=handle)
        return True


class InsideCompiler(CompilerBase):
    """numba's compiler, but for its last pass."""

    def define_pipelines(self) -> list[Any]:
        """Return the one list of passes."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [
            (_LowerInside if step is NativeLowering else step, purpose)
            for step, purpose in passes.passes
        ]
        passes.finalize()
        return [passes]
