"""Operations: what can be asked of Wakeful, each described once."""
