# SPDX-License-Identifier: Apache-2.0
"""Where the cases of the training conformance suite come from; see tools/gen_training_tests.py."""
