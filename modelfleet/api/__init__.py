"""What users write: types, rules, conditions and the CRDs made from them; pure, imports nothing of ours."""
