"""What every estimator is made of: asking a fitted model, training it, and its plain form.

`ranker` asks a fitted model for the best labels of rows, with their probabilities, over the `prepared`
trees that the native search takes. `estimator` adds parameters, `fit` and saving; `plt.PLT` and `br.BR`
build on it. `files` turns a model into JSON and arrays and back. `paths` reads the weights along a
label's paths, for those who explain.
"""
