"""BioCoder: functions of bioinformatics in Python and Java, compared with the originals on random input."""
