"""Files of an organisation -> values of the recommender: policies, job logs, logs of spot machines, fits."""
