"""Tests with the frameworks themselves, each file with the Python that has its framework.

tests/checkpoints/run.py BUILD [FILE|TEST]...: the last line counts.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = {  # file: environment, what it imports first
    "test_pytorch": ("checkpoints-venv", "torch"),
    "test_huggingface": ("checkpoints-venv", "transformers"),
    "test_lightning": ("checkpoints-venv", "lightning"),
    "test_tensorflow": ("checkpoints-venv", "tensorflow"),
    "test_jax": ("checkpoints-venv", "jax"),
    "test_onnxruntime": ("checkpoints-ort-venv", "onnxruntime"),
    "test_training_suite": ("checkpoints-ort-venv", "onnxruntime"),
}


def main():
    build, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    files = [f for f in FILES if f in wanted] or list(FILES)
    tests = [word for word in wanted if word not in FILES]
    quiet = {"CAMEO": f"{build}/cameo", "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu",
             "TF_CPP_MIN_LOG_LEVEL": "3", "TRANSFORMERS_VERBOSITY": "error",
             "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "2"}
    passed = failed = 0
    missing = []
    for file in files:
        environment, module = FILES[file]
        python = f"{build}/{environment}/bin/python3"
        has = os.path.exists(python) and subprocess.run(
            [python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
        if not has:
            missing.append(module)
            print(f"missing {module}: {file} was not run")
            continue
        print(f"{file}", flush=True)
        ran = subprocess.run([python, f"{HERE}/{file}.py", *tests], env={**os.environ, **quiet},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        lines = ran.stdout.splitlines()
        ok = sum(line.startswith("pass ") for line in lines)
        bad = sum(line.startswith("FAIL ") for line in lines)
        if ran.returncode and not bad:  # it could not even begin
            bad = 1
            lines += ["FAIL " + file, *ran.stderr.splitlines()[-20:]]
        print("\n".join("  " + line for line in lines), flush=True)
        passed += ok
        failed += bad
    if missing:
        print(f"not installed, so not tested: {', '.join(missing)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or missing else 0


sys.exit(main())
